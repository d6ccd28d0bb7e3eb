#include "manifest/shape_text.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "fmt/core.h"

namespace mega::manifest {

std::string ShapeText(const google::protobuf::RepeatedField<int64_t>& shape) {
  const int shown = std::min(shape.size(), kMostDimensions);
  const std::string extents = absl::StrJoin(shape.begin(), shape.begin() + shown, ", ");
  if (shown == shape.size()) return fmt::format("[{}]", extents);
  return fmt::format("[{}, … {} in all]", extents, shape.size());
}

}  // namespace mega::manifest
