// Numbers are read as digits × 10^exponent in 128 bits, multiplied by their unit, and only then
// must be whole: 1.5T is exact, and 1e300 overflows instead of wrapping.
#include "cli/spec/scalar.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "coordinator/planner/spec/units.h"

namespace mega::cli {
namespace {

constexpr int64_t kGiga = 1'000'000'000;

// value = digits × 10^exponent, with its sign.
struct Decimal {
  bool negative = false;
  __int128 digits = 0;
  int exponent = 0;
};

constexpr int kMaxDigits = 30;    // 128 bits hold 38, the unit's factor needs up to 14 bits more
constexpr int kMaxExponent = 40;  // beyond it nothing fits int64, and 10^x would overflow

// Takes a decimal number off the front of `text`; nullopt when there is none, or it is too long.
std::optional<Decimal> TakeDecimal(std::string_view& text) {
  Decimal number;
  std::string_view rest = text;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    number.negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  int significant = 0;
  bool any = false, point = false;
  for (; !rest.empty(); rest.remove_prefix(1)) {
    if (rest[0] == '.' && !point) {
      point = true;
      continue;
    }
    if (!absl::ascii_isdigit(rest[0])) break;
    any = true;
    if (significant > 0 || rest[0] != '0') ++significant;
    if (significant > kMaxDigits) return std::nullopt;
    number.digits = number.digits * 10 + (rest[0] - '0');
    if (point) --number.exponent;
    if (number.exponent < -kMaxExponent) return std::nullopt;
  }
  if (!any) return std::nullopt;
  if (rest.size() >= 2 && (rest[0] == 'e' || rest[0] == 'E')) {
    std::string_view power = rest.substr(1);
    if (power[0] == '+') power.remove_prefix(1);
    int exponent = 0;
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (error == std::errc() && end != power.data()) {
      if (exponent > kMaxExponent || exponent < -kMaxExponent) return std::nullopt;
      number.exponent += exponent;
      rest = power.substr(static_cast<size_t>(end - power.data()));
    }
  }
  text = rest;
  return number;
}

enum class Whole { kYes, kFraction, kOverflow };

// number × factor as int64.
Whole Scale(const Decimal& number, int64_t factor, int64_t* out) {
  __int128 value = number.digits;
  constexpr __int128 kLimit = __int128{1} << 120;
  int exponent = number.exponent;
  // Divide by tens while it stays exact; only then multiply, so that 1.5Ti needs no more bits.
  while (exponent < 0 && value % 10 == 0 && value != 0) value /= 10, ++exponent;
  if (value == 0) return *out = 0, Whole::kYes;
  if (value > kLimit / factor) return Whole::kOverflow;
  value *= factor;
  for (; exponent < 0; ++exponent, value /= 10)
    if (value % 10 != 0) return Whole::kFraction;
  for (; exponent > 0; --exponent, value *= 10)
    if (value > kLimit / 10) return Whole::kOverflow;
  if (number.negative) value = -value;
  if (value > std::numeric_limits<int64_t>::max() || value < std::numeric_limits<int64_t>::min())
    return Whole::kOverflow;
  *out = static_cast<int64_t>(value);
  return Whole::kYes;
}

bool HasLeadingZero(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && absl::ascii_isdigit(text[1]);
}

std::string_view UnitHint(std::string_view unit) {
  if (unit == "bytes") return " (such as 1048576, 512Mi or 80Gi)";
  if (unit == "tokens" || unit == "steps") return " (such as 1000, 500k or 1.5B)";
  return "";
}

}  // namespace

absl::StatusOr<int64_t> ParseInteger(std::string_view text, std::string_view unit) {
  if (HasLeadingZero(text))
    return InvalidArgument("starts with a zero, which other tools read as octal; drop it");
  std::string_view rest = text;
  const std::optional<Decimal> number = TakeDecimal(rest);
  int64_t factor = 1;
  bool known = rest.empty();
  for (const spec::Suffix& suffix : spec::SuffixesOf(unit)) {
    if (rest != suffix.text) continue;
    factor = suffix.factor;
    known = true;
  }
  if (!number.has_value() || !known)
    return InvalidArgument("is not a whole number{}", UnitHint(unit));
  int64_t value = 0;
  switch (Scale(*number, factor, &value)) {
    case Whole::kYes:
      return value;
    case Whole::kFraction:
      return InvalidArgument("is not a whole number{}", UnitHint(unit));
    case Whole::kOverflow:
      break;
  }
  return InvalidArgument("does not fit 64 bits; at most 9223372036854775807");
}

absl::StatusOr<double> ParseNumber(std::string_view text) {
  std::string_view digits = text;
  if (!digits.empty() && digits[0] == '+') digits.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range)
    return InvalidArgument("is beyond what a double holds");
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
    return InvalidArgument("is not a number (such as 0.1, 3e-4)");
  return value;
}

absl::StatusOr<bool> ParseBool(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return InvalidArgument("is neither true nor false");
}

absl::StatusOr<google::protobuf::Duration> ParseDuration(std::string_view text) {
  static constexpr char kWrong[] = "is no span of time (such as 30s, 2h, 1h30m)";
  __int128 total = 0;
  bool negative = false;
  std::string_view rest = text;
  if (rest.empty()) return InvalidArgument(kWrong);
  for (bool first = true; !rest.empty(); first = false) {
    if (!first && !absl::ascii_isdigit(rest[0])) return InvalidArgument(kWrong);
    std::optional<Decimal> number = TakeDecimal(rest);
    if (!number.has_value()) return InvalidArgument(kWrong);
    if (first) negative = number->negative;
    number->negative = false;
    int64_t factor = 0;
    for (const spec::Suffix& suffix : spec::TimeSuffixes()) {
      if (!rest.starts_with(suffix.text)) continue;
      factor = suffix.factor;
      rest.remove_prefix(suffix.text.size());
      break;
    }
    // A bare number is seconds, but not the tail of "1h30".
    if (factor == 0 && first && rest.empty()) factor = kGiga;
    if (factor == 0) return InvalidArgument(kWrong);
    int64_t ns = 0;
    switch (Scale(*number, factor, &ns)) {
      case Whole::kYes:
        break;
      case Whole::kFraction:
        return InvalidArgument("is finer than a nanosecond");
      case Whole::kOverflow:
        return InvalidArgument("is longer than 292 years");
    }
    total += ns;
    if (total > std::numeric_limits<int64_t>::max())
      return InvalidArgument("is longer than 292 years");
  }
  if (negative) total = -total;
  google::protobuf::Duration duration;
  duration.set_seconds(static_cast<int64_t>(total / kGiga));
  duration.set_nanos(static_cast<int32_t>(total % kGiga));
  return duration;
}

std::string FormatDuration(const google::protobuf::Duration& duration) {
  if (duration.nanos() == 0) return fmt::format("{}s", duration.seconds());
  const bool negative = duration.seconds() < 0 || duration.nanos() < 0;
  std::string text = fmt::format("{}{}.{:09}", negative ? "-" : "", std::abs(duration.seconds()),
                                 std::abs(duration.nanos()));
  text.resize(text.find_last_not_of('0') + 1);
  return text + "s";
}

std::string FormatNumber(double number) { return fmt::format("{}", number); }

}  // namespace mega::cli
