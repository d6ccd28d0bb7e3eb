// Runs a body once per instruction set that the build has and this processor runs.
#pragma once

#include <functional>

namespace mega::kernels {
void ForEachSimdTarget(const std::function<void()>& body);
}  // namespace mega::kernels
