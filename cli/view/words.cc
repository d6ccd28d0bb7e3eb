#include "cli/view/words.h"

#include <cstring>

#include "absl/strings/ascii.h"
#include "base/clock.h"
#include "fmt/core.h"

namespace mega::cli {
namespace {

// "JOB_PHASE_RUNNING" → "Running".
std::string Word(const std::string& name, size_t prefix) {
  if (name.size() <= prefix) return "Unknown";
  std::string word = name.substr(prefix);
  for (size_t i = 1; i < word.size(); ++i) word[i] = absl::ascii_tolower(word[i]);
  return word;
}

}  // namespace

std::string PhaseName(v1::JobPhase phase) {
  return Word(v1::JobPhase_Name(phase), std::strlen("JOB_PHASE_"));
}
std::string AttemptName(v1::AttemptState state) {
  return Word(v1::AttemptState_Name(state), std::strlen("ATTEMPT_STATE_"));
}
std::string NodeName(v1::NodeState state) {
  return Word(v1::NodeState_Name(state), std::strlen("NODE_STATE_"));
}

std::string FormatSpan(absl::Duration span) {
  if (span < absl::ZeroDuration()) return "0s";
  const int64_t s = absl::ToInt64Seconds(span);
  if (s < 10) return fmt::format("{:.1f}s", absl::ToDoubleSeconds(span));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86'400) return fmt::format("{}h{:02}m", s / 3600, s % 3600 / 60);
  return fmt::format("{}d{:02}h", s / 86'400, s % 86'400 / 3600);
}

std::string FormatCount(double count) {
  static constexpr const char* kUnits[] = {"", "k", "M", "B", "T"};
  size_t unit = 0;
  while (count >= 999.5 && unit + 1 < std::size(kUnits)) count /= 1000, ++unit;
  if (unit == 0) return fmt::format("{:.0f}", count);
  const int decimals = count < 10 ? 2 : count < 100 ? 1 : 0;
  return fmt::format("{:.{}f}{}", count, decimals, kUnits[unit]);
}

std::string FormatAge(const google::protobuf::Timestamp& time, bool is_set, absl::Time now) {
  return is_set ? FormatSpan(now - FromProto(time)) : "-";
}

std::string FormatTime(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", FromProto(time), absl::UTCTimeZone());
}

std::string FormatExit(const v1::ExitStatus& exit) {
  std::string text = fmt::format("code {}", exit.code());
  if (exit.signal() != 0) {
    const char* name = sigabbrev_np(exit.signal());
    text = name != nullptr ? fmt::format("signal {} (SIG{})", exit.signal(), name)
                           : fmt::format("signal {}", exit.signal());
  }
  return exit.killed_by_worker() ? text + " by the worker" : text;
}

void AddLine(std::string& out, std::string_view name, std::string_view value) {
  if (!value.empty()) out += fmt::format("{:<12}{}\n", name, value);
}

}  // namespace mega::cli
