// data.split: shares of train, validation and test, in any unit ("949,50,1", "0.9,0.1").
#pragma once

#include <array>
#include <string_view>

#include "base/status.h"

namespace mega::spec {

// Shares that add up to 1, missing ones 0. INVALID_ARGUMENT unless there are one to three finite
// numbers, none negative, the first positive.
absl::StatusOr<std::array<double, 3>> ParseSplit(std::string_view text);

}  // namespace mega::spec
