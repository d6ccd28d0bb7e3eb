// Text of one value in a job file → a number, a truth value, a span of time. Exact: what does not
// fit its type, or would have to be rounded, is refused with what to write instead.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "google/protobuf/duration.pb.h"

namespace mega::cli {

// Whole numbers: "20", "1e6", and with a unit its suffixes:
//   bytes            B, k M G T (powers of 1000), Ki Mi Gi Ti (of 1024)      "80Gi"
//   tokens, steps    k M B T (thousand … trillion)                           "1.5T"
// `unit` is KeyRule.unit; empty: no suffix. INVALID_ARGUMENT says what is wrong, without the key.
absl::StatusOr<int64_t> ParseInteger(std::string_view text, std::string_view unit);

// A finite decimal number; no suffix.
absl::StatusOr<double> ParseNumber(std::string_view text);

// true or false.
absl::StatusOr<bool> ParseBool(std::string_view text);

// "30s", "2h", "1h30m", "250ms", or a plain number of seconds. Exact to the nanosecond.
absl::StatusOr<google::protobuf::Duration> ParseDuration(std::string_view text);

// The shortest text that ParseDuration, ParseNumber read back to the same value.
std::string FormatDuration(const google::protobuf::Duration& duration);
std::string FormatNumber(double number);

}  // namespace mega::cli
