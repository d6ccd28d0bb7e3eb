#include "worker/daemon/probes/judge.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "fmt/core.h"

namespace mega::daemon {
namespace {

constexpr int64_t kNicErrors = 10;  // from one run to the next
constexpr absl::Duration kStep = absl::Milliseconds(500);
constexpr absl::Duration kStepIsHeldFor = absl::Minutes(10);
constexpr size_t kMostNamed = 4;

void Take(v1::Severity severity, const std::string& message, v1::Finding* worst) {
  if (severity <= worst->severity()) return;
  worst->set_severity(severity);
  worst->set_message(message);
}

}  // namespace

void Judge::Answered(const std::string& check, const ProbeAnswer& answer) {
  silent_.erase(check);
  not_asked_.erase(check);
  v1::Finding worst;
  for (const v1::Finding& finding : answer.findings) {
    Take(finding.severity(), finding.message(), &worst);
  }
  if (check == "nic") JudgeNic(answer, &worst);
  if (check == "d_state") JudgeBlocked(answer, &worst);
  before_[check] = answer;
  worst.set_check(check);
  if (worst.severity() == v1::SEVERITY_UNSPECIFIED) {
    findings_.erase(check);
  } else {
    findings_[check] = std::move(worst);
  }
}

void Judge::GaveNone(const std::string& check, absl::Duration deadline) {
  not_asked_.erase(check);
  const int times = ++silent_[check];
  v1::Finding& finding = findings_[check];
  finding.set_check(check);
  finding.set_severity(times < 2 ? v1::SEVERITY_WARNING : v1::SEVERITY_ERROR);
  finding.set_message(
      times < 2
          ? fmt::format("the probe gave no answer within {} and was killed",
                        absl::FormatDuration(deadline))
          : fmt::format("the probe has given no answer within {} twice and more: what it looks "
                        "at hangs in the kernel; the node needs a look, or a reboot",
                        absl::FormatDuration(deadline)));
}

void Judge::NotAsked(const std::string& check, const std::string& why) {
  if (++not_asked_[check] < 2) return;
  v1::Finding& finding = findings_[check];
  if (finding.severity() == v1::SEVERITY_ERROR) return;  // what it says is nearer to the cause
  finding.set_check(check);
  finding.set_severity(v1::SEVERITY_ERROR);
  finding.set_message(fmt::format(
      "the probe could not be started twice and more: {}; processes, memory or the program itself "
      "are missing, and ranks would not start either",
      why));
}

void Judge::SeeClocks(absl::Time wall, absl::Duration boot) {
  const absl::Duration step = (wall - wall_) - (boot - boot_);
  const bool has_before = has_clocks_;
  has_clocks_ = true;
  wall_ = wall;
  boot_ = boot;
  if (has_before && absl::AbsDuration(step) >= kStep) {
    v1::Finding& finding = findings_["clock"];
    finding.set_check("clock");
    finding.set_severity(v1::SEVERITY_WARNING);
    finding.set_message(fmt::format(
        "the wall clock was set by {}; times in logs and metrics of this node jump there "
        "(leases do not use it)",
        absl::FormatDuration(absl::Trunc(step, absl::Milliseconds(1)))));
    stepped_at_ = boot;
  } else if (boot - stepped_at_ >= kStepIsHeldFor) {
    findings_.erase("clock");
  }
}

void Judge::JudgeNic(const ProbeAnswer& answer, v1::Finding* worst) const {
  const auto before = before_.find("nic");
  if (before == before_.end()) return;
  for (const auto& [name, errors] : answer.samples) {
    const auto earlier = before->second.samples.find(name);
    if (earlier == before->second.samples.end() || errors - earlier->second < kNicErrors) continue;
    Take(v1::SEVERITY_WARNING,
         fmt::format("{} has {} more errors than a moment ago, {} in all; a cable, a port or a "
                     "driver: `ip -s link show {}`",
                     name, errors - earlier->second, errors, name),
         worst);
  }
}

void Judge::JudgeBlocked(const ProbeAnswer& answer, v1::Finding* worst) const {
  const auto before = before_.find("d_state");
  if (before == before_.end()) return;
  std::vector<std::string> stuck;
  for (const auto& [process, start] : answer.samples) {
    const auto earlier = before->second.samples.find(process);
    if (earlier == before->second.samples.end() || earlier->second != start) continue;
    stuck.push_back(process);
  }
  if (stuck.empty()) return;
  const size_t number = stuck.size();
  stuck.resize(std::min(number, kMostNamed));
  Take(v1::SEVERITY_WARNING,
       fmt::format("{} processes have been in D state since the run before, which no signal ends: "
                   "{}; a disk, a mount or a driver hangs",
                   number, absl::StrJoin(stuck, ", ")),
       worst);
}

std::vector<v1::Finding> Judge::Findings() const {
  std::vector<v1::Finding> findings;
  for (const auto& [check, finding] : findings_) findings.push_back(finding);
  return findings;
}

}  // namespace mega::daemon
