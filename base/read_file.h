// Small files that others may have put there: a configuration, an index, a manifest.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace mega {

// A regular file, opened to read: a pipe or a device, which could block for ever, is
// INVALID_ARGUMENT. `size`, if given, becomes its size.
absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path, int64_t* size = nullptr);

// All of a regular file; more than max_bytes is INVALID_ARGUMENT, none at all NOT_FOUND.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, int64_t max_bytes);

}  // namespace mega
