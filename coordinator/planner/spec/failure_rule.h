// One line of recovery.rules: how a rank ended, and what is done then.
//   exit CODE -> RUNG      it ended with this code
//   signal S -> RUNG       a signal ended it: a number, or a name with or without SIG
//   log TEXT -> RUNG       TEXT stands in its stderr's end, letter for letter
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "mega/v1/job.pb.h"

namespace mega::spec {

struct FailureRule {
  enum class Sign { kExit, kSignal, kLog };
  Sign sign = Sign::kExit;
  int64_t number = 0;  // of kExit and kSignal
  std::string text;    // of kLog
  std::string rung;    // any word; which of them exist is said by recovery.ladder's KeyRule
};

// INVALID_ARGUMENT says what is wrong with it, and how one is written.
absl::StatusOr<FailureRule> ParseFailureRule(std::string_view text);

// Is it about this end of a rank? Ends that the worker brought about are the rank's own in no way,
// and no rule is about them.
bool IsAbout(const FailureRule& rule, const v1::ExitStatus& exit);

}  // namespace mega::spec
