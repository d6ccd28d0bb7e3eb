#include "manifest/slice_file.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "fmt/core.h"

namespace mega::manifest {
namespace {

// Moves `text` past `prefix`.
bool Take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Digits at the start of `text`, which is moved past them. False for none, and for more than an
// int64 holds.
bool TakeNumber(std::string_view& text, int64_t& number) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  if (!absl::SimpleAtoi(absl::string_view(text.data(), end), &number)) return false;
  text.remove_prefix(end);
  return true;
}

}  // namespace

std::string SliceFileName(const SliceFile& file) {
  return fmt::format("a{}-r{:05}.safetensors", file.attempt, file.rank);
}

std::optional<SliceFile> ParseSliceFileName(std::string_view name) {
  SliceFile file;
  if (!Take(name, "a") || !TakeNumber(name, file.attempt)) return std::nullopt;
  if (!Take(name, "-r") || !TakeNumber(name, file.rank)) return std::nullopt;
  if (name != ".safetensors" && name != ".safetensors.tmp") return std::nullopt;
  return file;
}

}  // namespace mega::manifest
