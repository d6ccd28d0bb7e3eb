#include "manifest/step_folder.h"

#include "absl/strings/numbers.h"
#include "fmt/core.h"

namespace mega::manifest {
namespace {

constexpr std::string_view kPrefix = "step-";

}  // namespace

std::string StepFolderName(int64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

std::optional<int64_t> ParseStepFolderName(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  int64_t step = 0;
  const bool is_number = digits.find_first_not_of("0123456789") == std::string_view::npos &&
                         absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &step);
  return is_number ? std::make_optional(step) : std::nullopt;
}

}  // namespace mega::manifest
