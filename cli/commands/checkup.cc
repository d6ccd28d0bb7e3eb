#include "cli/commands/checkup.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_join.h"
#include "base/byte_count.h"
#include "base/clock.h"
#include "cli/client/errors.h"
#include "cli/commands/worker_command.h"
#include "cli/view/words.h"
#include "fmt/core.h"
#include "nlohmann/json.hpp"

namespace mega::cli {
namespace {

// A heartbeat comes each second and is suspect after three.
constexpr absl::Duration kClockSkew = absl::Seconds(2);
constexpr absl::Duration kOldHeartbeat = absl::Seconds(5);
// Docker gives a container 64 MiB, in which two ranks of a small model just fit.
constexpr double kLittleSharedMemory = 256.0 * (1 << 20);
// A checkpoint of a small model, and its logs.
constexpr double kNoDisk = 1.0 * (1 << 30);
constexpr double kLittleDisk = 10.0 * (1 << 30);
constexpr int kShownNodes = 8;

const char* Word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kFail:
      return "fail";
  }
  return "";
}

std::string Names(const std::vector<std::string>& names) {
  std::string list;
  for (int i = 0; i < std::min<int>(static_cast<int>(names.size()), kShownNodes); ++i) {
    list += (list.empty() ? "" : ", ") + names[static_cast<size_t>(i)];
  }
  if (names.size() > kShownNodes) list += fmt::format(" and {} more", names.size() - kShownNodes);
  return list;
}

}  // namespace

Check CheckCoordinator(const Target& target,
                       const absl::StatusOr<v1::GetVersionResponse>& version) {
  Check check{.name = "coordinator"};
  if (version.ok()) {
    check.finding = fmt::format("{} (from {}) serves", target.address, target.source);
    return check;
  }
  // Further lines are ways out, too.
  check.finding = std::string(version.status().message());
  check.finding.resize(std::min(check.finding.find('\n'), check.finding.size()));
  if (target.source == "default") {
    check.verdict = Verdict::kWarn;
    check.way_out =
        "none was named and `megactl run` needs none; for a cluster: --coordinator HOST:PORT, "
        "MEGACTL_COORDINATOR or ~/.config/megactl/config.yaml";
  } else {
    check.verdict = Verdict::kFail;
    check.way_out = fmt::format("is {} from {} right, and mega-coordinator running there?",
                                target.address, target.source);
  }
  return check;
}

Check CheckRefusal(const absl::Status& why) {
  return {.name = "coordinator",
          .verdict = Verdict::kFail,
          .finding = std::string(why.message()),
          .way_out =
              "it was not asked; mend that, or name another: --coordinator HOST:PORT, "
              "MEGACTL_COORDINATOR or ~/.config/megactl/config.yaml"};
}

Check CheckVersions(const std::string& own, const std::string& coordinator,
                    const v1::ListNodesResponse& nodes) {
  Check check{.name = "versions"};
  std::map<std::string, std::vector<std::string>> others;
  for (const v1::Node& node : nodes.nodes()) {
    const bool counts = node.state() != v1::NODE_STATE_LOST && !node.version().empty();
    if (counts && node.version() != coordinator) {
      others[Printable(node.version())].push_back(Printable(node.name()));
    }
  }
  check.finding = fmt::format("megactl {}, coordinator {}", own, Printable(coordinator));
  for (const auto& [version, names] : others) {
    check.finding += fmt::format(", {} on {}", version, Names(names));
  }
  if (own == coordinator && others.empty()) {
    check.finding += nodes.nodes().empty() ? "" : ", and all workers likewise";
    return check;
  }
  check.verdict = Verdict::kWarn;
  check.way_out = "install one release everywhere: coordinator first, then workers, then megactl";
  return check;
}

std::vector<Check> CheckNodes(const v1::ListNodesResponse& nodes, const Target& target) {
  Check states{.name = "nodes"};
  if (nodes.nodes().empty()) {
    states.verdict = Verdict::kWarn;
    states.finding = "there are none: jobs wait in the queue";
    states.way_out = "start one: " + WorkerCommand(target);
    return {states};
  }
  std::vector<std::string> lost, suspect, cordoned, leaving;
  std::vector<Check> checks;
  int64_t ready = 0;
  for (const v1::Node& node : nodes.nodes()) {
    const std::string name = Printable(node.name());
    if (node.state() == v1::NODE_STATE_LOST) lost.push_back(name);
    if (node.state() == v1::NODE_STATE_SUSPECT) suspect.push_back(name);
    if (node.state() == v1::NODE_STATE_DRAINING) leaving.push_back(name);
    if (node.cordoned()) cordoned.push_back(name);
    if (node.state() == v1::NODE_STATE_READY && !node.cordoned()) ++ready;
    for (const v1::Finding& finding : node.findings()) {
      const bool is_error = finding.severity() == v1::SEVERITY_ERROR;
      checks.push_back(
          {.name = "node " + name,
           .verdict = is_error ? Verdict::kFail : Verdict::kWarn,
           .finding =
               fmt::format("{}: {}", Printable(finding.check()), Printable(finding.message())),
           .way_out = is_error ? "nothing new is placed there until it is mended" : ""});
    }
  }
  states.finding = fmt::format("{} of {} take jobs", ready, nodes.nodes_size());
  const auto add = [&](const char* what, const std::vector<std::string>& names,
                       const std::string& way_out) {
    if (names.empty()) return;
    states.verdict = std::max(states.verdict, Verdict::kWarn);
    states.finding += fmt::format("; {}: {}", what, Names(names));
    states.way_out += (states.way_out.empty() ? "" : "; ") + way_out;
  };
  add("lost", lost, "lost: is mega-worker running there, and its network up?");
  add("suspect", suspect, "suspect: that machine or its network is slow");
  add("leaving", leaving, "leaving: its worker was told to end");
  add("cordoned", cordoned, "cordoned: megactl uncordon NODE when it is well again");
  if (ready == 0) states.verdict = Verdict::kFail;
  checks.insert(checks.begin(), std::move(states));
  return checks;
}

Check CheckClock(const v1::ListNodesResponse& nodes, absl::Time now) {
  Check check{.name = "clock"};
  absl::Time newest = absl::InfinitePast();
  for (const v1::Node& node : nodes.nodes()) {
    if (node.state() != v1::NODE_STATE_READY || !node.has_last_heartbeat()) continue;
    newest = std::max(newest, FromProto(node.last_heartbeat()));
  }
  if (newest == absl::InfinitePast()) {
    check.finding = "not compared: no node is in session, and a heartbeat carries the time";
    return check;
  }
  const absl::Duration behind = newest - now;
  if (behind <= kClockSkew && behind >= -kOldHeartbeat) {
    check.finding = "agrees with the coordinator's within seconds";
    return check;
  }
  check.verdict = Verdict::kWarn;
  check.finding = fmt::format("this machine is {} {} the coordinator",
                              FormatSpan(behind > absl::ZeroDuration() ? behind : -behind),
                              behind > absl::ZeroDuration() ? "behind" : "ahead of");
  check.way_out =
      "ages and times that megactl shows are off by as much; run NTP on both (chrony, timesyncd)";
  return check;
}

Check CheckPrograms(const std::vector<std::string>& missing) {
  Check check{.name = "programs"};
  if (missing.empty()) {
    check.finding = "mega-coordinator, mega-worker and mega-engine lie beside megactl";
    return check;
  }
  check.verdict = Verdict::kWarn;
  check.finding = Names(missing) + " not beside megactl";
  check.way_out = fmt::format(
      "megactl run, generate and data need them here; a cluster does not. Build: ninja -C BUILD {}",
      absl::StrJoin(missing, " "));
  return check;
}

Check CheckSharedMemory(std::optional<double> free_bytes) {
  Check check{.name = "shared memory"};
  if (!free_bytes) {
    check.verdict = Verdict::kWarn;
    check.finding = "there is no /dev/shm";
    check.way_out = "mount a tmpfs there: ranks of one machine talk through it";
    return check;
  }
  check.finding = fmt::format("{} free in /dev/shm", FormatBytes(*free_bytes));
  if (*free_bytes >= kLittleSharedMemory) return check;
  check.verdict = Verdict::kWarn;
  check.way_out =
      fmt::format("ranks of one machine talk through it; give it {} (docker: --shm-size)",
                  FormatBytes(kLittleSharedMemory));
  return check;
}

Check CheckDisk(const std::string& folder, std::optional<double> free_bytes) {
  Check check{.name = "disk"};
  if (!free_bytes) {
    check.verdict = Verdict::kFail;
    check.finding = folder + " cannot be read";
    check.way_out = "start megactl in a folder of yours: run writes to mega-runs in it";
    return check;
  }
  check.finding = fmt::format("{} free for mega-runs in {}", FormatBytes(*free_bytes), folder);
  if (*free_bytes >= kLittleDisk) return check;
  check.verdict = *free_bytes < kNoDisk ? Verdict::kFail : Verdict::kWarn;
  check.way_out = "checkpoints go there: make room, or give run another place with --run-dir";
  return check;
}

bool HasFailed(const std::vector<Check>& checks) {
  return std::ranges::find(checks, Verdict::kFail, &Check::verdict) != checks.end();
}

std::string ChecksText(const std::vector<Check>& checks, const Palette& palette) {
  int width = 0;
  for (const Check& check : checks) width = std::max(width, DisplayWidth(check.name));
  std::string out;
  for (const Check& check : checks) {
    const std::string& colour = check.verdict == Verdict::kOk     ? palette.green
                                : check.verdict == Verdict::kWarn ? palette.yellow
                                                                  : palette.red;
    const std::string padding(static_cast<size_t>(width - DisplayWidth(check.name)), ' ');
    out += fmt::format("{}{:<4}{}  {}{}  {}\n", colour, Word(check.verdict), palette.reset,
                       check.name, padding, check.finding);
    if (!check.way_out.empty()) {
      out += std::string(static_cast<size_t>(width) + 8, ' ') + "→ " + check.way_out + "\n";
    }
  }
  return out;
}

nlohmann::ordered_json ChecksJson(const std::vector<Check>& checks) {
  nlohmann::ordered_json json = {{"ok", !HasFailed(checks)},
                                 {"checks", nlohmann::ordered_json::array()}};
  for (const Check& check : checks) {
    json["checks"].push_back({{"name", check.name},
                              {"verdict", Word(check.verdict)},
                              {"finding", check.finding},
                              {"way_out", check.way_out}});
  }
  return json;
}

}  // namespace mega::cli
