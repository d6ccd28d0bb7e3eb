#include "coordinator/planner/spec/failure_rule.h"

#include <string.h>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace mega::spec {
namespace {

constexpr char kWayOut[] =
    "write 'exit 17 -> stop', 'signal SIGBUS -> spare' or 'log out of memory -> stop'";
constexpr int64_t kLastSignal = 64;
// Success is no failure; a process cannot say more than a byte.
constexpr int64_t kLastCode = 255;

absl::StatusOr<int64_t> ParseSignal(std::string_view word) {
  const absl::string_view text(word.data(), word.size());
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number) && number >= 1 && number <= kLastSignal) return number;
  const std::string name(absl::StripPrefix(text, "SIG"));
  for (int64_t signal = 1; signal <= kLastSignal; ++signal) {
    const char* abbreviation = sigabbrev_np(static_cast<int>(signal));
    if (abbreviation != nullptr && name == abbreviation) return signal;
  }
  return InvalidArgument("names the signal '{}', which is neither 1 to {} nor a name as SIGBUS; {}",
                         word, kLastSignal, kWayOut);
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

absl::StatusOr<FailureRule> ParseFailureRule(std::string_view text) {
  // The last arrow: a log line may hold others.
  const size_t arrow = text.rfind("->");
  if (arrow == std::string_view::npos) return InvalidArgument("has no '->'; {}", kWayOut);
  const std::string_view left = Trim(text.substr(0, arrow));
  const size_t space = left.find(' ');
  const std::string_view sign = left.substr(0, space);
  const std::string_view value =
      space == std::string_view::npos ? std::string_view() : Trim(left.substr(space));

  FailureRule rule;
  rule.rung = Trim(text.substr(arrow + 2));
  if (rule.rung.empty()) return InvalidArgument("says nothing after '->'; {}", kWayOut);
  if (value.empty()) return InvalidArgument("says nothing after '{}'; {}", sign, kWayOut);
  if (sign == "exit") {
    if (!absl::SimpleAtoi(absl::string_view(value.data(), value.size()), &rule.number) ||
        rule.number < 1 || rule.number > kLastCode)
      return InvalidArgument("names the exit code '{}', which is not 1 to {}; {}", value, kLastCode,
                             kWayOut);
  } else if (sign == "signal") {
    rule.sign = FailureRule::Sign::kSignal;
    MEGA_ASSIGN_OR_RETURN(rule.number, ParseSignal(value));
  } else if (sign == "log") {
    rule.sign = FailureRule::Sign::kLog;
    rule.text = value;
  } else {
    return InvalidArgument("begins with '{}', which is none of exit, signal and log; {}", sign,
                           kWayOut);
  }
  return rule;
}

bool IsAbout(const FailureRule& rule, const v1::ExitStatus& exit) {
  if (exit.killed_by_worker() || (exit.code() == 0 && exit.signal() == 0)) return false;
  switch (rule.sign) {
    case FailureRule::Sign::kExit:
      return exit.signal() == 0 && exit.code() == rule.number;
    case FailureRule::Sign::kSignal:
      return exit.signal() == rule.number;
    case FailureRule::Sign::kLog:
      return exit.stderr_tail().find(rule.text) != std::string::npos ||
             exit.message().find(rule.text) != std::string::npos;
  }
  return false;
}

}  // namespace mega::spec
