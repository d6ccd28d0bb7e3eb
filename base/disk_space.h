// What the file system below a path holds and has left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mega {

struct DiskSpace {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;    // for those who are not root
  uint64_t total_files = 0;  // 0: it does not count them
  uint64_t free_files = 0;
  bool is_read_only = false;
};

// Nothing when the path cannot be asked about; it must be there.
std::optional<DiskSpace> DiskSpaceAt(const std::string& path);

}  // namespace mega
