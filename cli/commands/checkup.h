// What `doctor` makes of what it has seen. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "cli/client/target.h"
#include "cli/view/terminal.h"
#include "mega/v1/cluster.pb.h"
#include "nlohmann/json_fwd.hpp"

namespace mega::cli {

enum class Verdict { kOk, kWarn, kFail };

struct Check {
  std::string name;
  Verdict verdict = Verdict::kOk;
  std::string finding;  // what was seen
  std::string way_out;  // what to do; empty when it is ok
};

// A coordinator that nobody named may be missing: `megactl run` brings its own.
Check CheckCoordinator(const Target& target, const absl::StatusOr<v1::GetVersionResponse>& version);
// Where megactl itself would not ask: what was said of the coordinator or of TLS cannot be.
Check CheckRefusal(const absl::Status& why);
// megactl, coordinator and workers of one release.
Check CheckVersions(const std::string& own, const std::string& coordinator,
                    const v1::ListNodesResponse& nodes);
// One for all states, and one for each node with findings.
std::vector<Check> CheckNodes(const v1::ListNodesResponse& nodes, const Target& target);
// Against the stamp that the coordinator gave the newest heartbeat. Nothing to say without a node
// in session.
Check CheckClock(const v1::ListNodesResponse& nodes, absl::Time now);
// `missing` of the programs that a local run needs.
Check CheckPrograms(const std::vector<std::string>& missing);
// Nothing: it could not be asked.
Check CheckSharedMemory(std::optional<double> free_bytes);
Check CheckDisk(const std::string& folder, std::optional<double> free_bytes);

bool HasFailed(const std::vector<Check>& checks);
std::string ChecksText(const std::vector<Check>& checks, const Palette& palette);
// {ok, checks: [{name, verdict, finding, way_out}]}
nlohmann::ordered_json ChecksJson(const std::vector<Check>& checks);

}  // namespace mega::cli
