// What the answers of the probes, run after run, are held against the node for. Pure: time comes
// in.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "worker/daemon/probes/checks.h"

namespace mega::daemon {

class Judge {
 public:
  // The answer of a check; it takes the place of the one before.
  void Answered(const std::string& check, const ProbeAnswer& answer);
  // It gave none: the first time in a row this may be a busy machine, the second time it is not.
  void GaveNone(const std::string& check, absl::Duration deadline);
  // It could not be asked, which says nothing of what it looks at: what was found before stands.
  // The second time in a row it is a finding itself, for a rank could not be started either.
  void NotAsked(const std::string& check, const std::string& why);
  // The wall clock beside one that nobody sets. A step is held against the node for ten minutes.
  void SeeClocks(absl::Time wall, absl::Duration boot);

  // One of each check at most, the worst; by name.
  std::vector<v1::Finding> Findings() const;

 private:
  void JudgeNic(const ProbeAnswer& answer, v1::Finding* worst) const;
  void JudgeBlocked(const ProbeAnswer& answer, v1::Finding* worst) const;

  std::map<std::string, v1::Finding> findings_;
  std::map<std::string, ProbeAnswer> before_;
  std::map<std::string, int> silent_;     // times in a row
  std::map<std::string, int> not_asked_;  // likewise
  bool has_clocks_ = false;
  absl::Time wall_;
  absl::Duration boot_;
  absl::Duration stepped_at_;
};

}  // namespace mega::daemon
