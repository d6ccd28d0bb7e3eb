// Names of the folders of checkpoints: step-00000200.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mega::manifest {

std::string StepFolderName(int64_t step);
// Nothing for any other name; digits may be fewer or more.
std::optional<int64_t> ParseStepFolderName(std::string_view name);

}  // namespace mega::manifest
