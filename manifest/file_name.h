// Names of files that others chose: in manifests and indexes, of files beside them.
#pragma once

#include <string_view>

namespace mega::manifest {

// One name in a folder: no way out of it, and not longer than file systems take.
inline bool IsFileName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace mega::manifest
