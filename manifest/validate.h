// What the manifest of a complete checkpoint is. The coordinator asks before it commits one and a
// rank before it loads one, so nothing is committed that cannot be loaded.
#pragma once

#include "base/status.h"
#include "mega/v1/checkpoint.pb.h"

namespace mega::manifest {

// INVALID_ARGUMENT names the tensor, slice or file and both values: version, shapes without
// overflow, slices inside their tensors and covering each exactly once, files that are plain names.
// What passes can be loaded without further checks of names and ranges.
absl::Status Validate(const v1::Manifest& manifest);

}  // namespace mega::manifest
