#include "coordinator/core/jobs/phase.h"

#include <string.h>

#include <algorithm>

#include "base/check.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

// Not strsignal: its words depend on the locale, and a decision must not.
std::string SignalName(int signal) {
  const char* abbreviation = sigabbrev_np(signal);
  return abbreviation == nullptr ? "unknown" : fmt::format("SIG{}", abbreviation);
}

}  // namespace

std::string_view PhaseName(v1::JobPhase phase) {
  std::string_view name = v1::JobPhase_Name(phase);
  if (name.starts_with("JOB_PHASE_")) name.remove_prefix(sizeof("JOB_PHASE_") - 1);
  return name;
}

std::string DescribeExit(const v1::ExitStatus& exit) {
  std::string text = exit.signal() != 0
                         ? fmt::format("signal {} ({})", exit.signal(), SignalName(exit.signal()))
                         : fmt::format("code {}", exit.code());
  if (!exit.message().empty()) text += fmt::format(": {}", exit.message());
  return text;
}

const v1::RankState* FindOwnExit(const v1::Attempt& attempt, std::initializer_list<int> codes) {
  const auto found = std::ranges::find_if(attempt.ranks(), [&](const v1::RankState& rank) {
    return rank.exited() && !rank.exit().killed_by_worker() && rank.exit().signal() == 0 &&
           std::ranges::count(codes, rank.exit().code()) > 0;
  });
  return found == attempt.ranks().end() ? nullptr : &*found;
}

void SetReason(Draft& draft, const JobUid& uid, const std::string& reason) {
  if (draft.FindJob(uid)->reason() != reason) draft.EditJob(uid).set_reason(reason);
}

void EndJob(Draft& draft, v1::Job& job, v1::JobPhase phase, std::string reason) {
  MEGA_CHECK(IsTerminal(phase) && !IsTerminal(job.phase()));
  job.set_phase(phase);
  job.set_reason(reason);
  *job.mutable_end_time() = draft.wall();
  // The last parts of a job that succeeded may come after the last exit.
  if (phase != v1::JOB_PHASE_SUCCEEDED) draft.ForgetParts(job.uid());
  const bool is_failure = phase == v1::JOB_PHASE_FAILED;
  draft.AddEvent(job.uid(), is_failure ? v1::SEVERITY_ERROR : v1::SEVERITY_INFO, PhaseName(phase),
                 std::move(reason), {{"last_step", std::to_string(job.last_step())}});
}

}  // namespace mega::core
