#include "kernels/label_count.h"

#include <algorithm>

#include "kernels/cross_entropy.h"

namespace mega::kernels {

int64_t CountLabels(Stream& stream, TensorView labels_T) {
  const auto labels = labels_T.flat<const int32_t>();
  return labels_T.elements() - std::count(labels.begin(), labels.end(), kIgnoredLabel);
}

}  // namespace mega::kernels
