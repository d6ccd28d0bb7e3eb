#include "base/disk_space.h"

#include <sys/statvfs.h>

namespace mega {

std::optional<DiskSpace> DiskSpaceAt(const std::string& path) {
  struct statvfs disk {};
  if (statvfs(path.c_str(), &disk) != 0) return std::nullopt;
  const auto block = static_cast<int64_t>(disk.f_frsize);
  return DiskSpace{.total_bytes = static_cast<int64_t>(disk.f_blocks) * block,
                   .free_bytes = static_cast<int64_t>(disk.f_bavail) * block,
                   .total_files = disk.f_files,
                   .free_files = disk.f_favail,
                   .is_read_only = (disk.f_flag & ST_RDONLY) != 0};
}

}  // namespace mega
