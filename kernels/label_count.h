// How many labels of a batch count in the loss.
//   labels_T  i32, kIgnoredLabel = masked
// Waits for `stream`: the answer is a number on the host.
#pragma once

#include <cstdint>

#include "kernels/device/stream.h"
#include "kernels/tensor_view.h"

namespace mega::kernels {

int64_t CountLabels(Stream& stream, TensorView labels_T);

}  // namespace mega::kernels
