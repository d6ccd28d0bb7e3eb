// How options read numbers: CLI11 would saturate what does not fit, and take 010 for eight.
#pragma once

#include <cmath>
#include <concepts>
#include <string>

#include "absl/strings/numbers.h"

namespace mega {

template <typename T>
bool ReadNumber(const std::string& text, T& number) {
  if constexpr (std::floating_point<T>) {
    return absl::SimpleAtod(text, &number) && std::isfinite(number);
  } else {
    return absl::SimpleAtoi(text, &number);
  }
}

}  // namespace mega
