#include "coordinator/planner/spec/units.h"

namespace mega::spec {
namespace {

constexpr int64_t kKilo = 1'000, kMega = 1'000'000, kGiga = 1'000'000'000,
                  kTera = 1'000'000'000'000;
constexpr Suffix kByteSuffixes[] = {{"Ki", int64_t{1} << 10},
                                    {"Mi", int64_t{1} << 20},
                                    {"Gi", int64_t{1} << 30},
                                    {"Ti", int64_t{1} << 40},
                                    {"k", kKilo},
                                    {"M", kMega},
                                    {"G", kGiga},
                                    {"T", kTera},
                                    {"B", 1}};
constexpr Suffix kCountSuffixes[] = {{"k", kKilo}, {"M", kMega}, {"B", kGiga}, {"T", kTera}};
constexpr Suffix kTimeSuffixes[] = {
    {"ms", kMega}, {"s", kGiga}, {"m", 60 * kGiga}, {"h", 3'600 * kGiga}, {"d", 86'400 * kGiga}};

}  // namespace

std::span<const Suffix> SuffixesOf(std::string_view unit) {
  if (unit == "bytes") return kByteSuffixes;
  if (unit == "tokens" || unit == "steps") return kCountSuffixes;
  return {};
}

std::span<const Suffix> TimeSuffixes() { return kTimeSuffixes; }

}  // namespace mega::spec
