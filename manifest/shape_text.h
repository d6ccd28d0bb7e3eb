// Shapes and offsets as errors show them.
#pragma once

#include <string>

#include "google/protobuf/repeated_field.h"

namespace mega::manifest {

inline constexpr int kMostDimensions = 6;  // of a tensor

// "[2, 3]". Of more extents than a tensor can have the first, and how many there are: others wrote
// them, and an error is for people to read.
std::string ShapeText(const google::protobuf::RepeatedField<int64_t>& shape);

}  // namespace mega::manifest
