// Suffixes of values in a job file. What reads them and the schema that editors check against say
// the same.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace mega::spec {

struct Suffix {
  std::string_view text;
  int64_t factor;
};

// Of whole numbers, by KeyRule.unit: bytes, tokens, steps; none of others.
std::span<const Suffix> SuffixesOf(std::string_view unit);

// Of spans of time, in nanoseconds. A suffix stands before its own beginnings: ms, then m.
std::span<const Suffix> TimeSuffixes();

}  // namespace mega::spec
