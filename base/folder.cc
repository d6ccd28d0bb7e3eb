#include "base/folder.h"

#include <system_error>

namespace mega {

namespace fs = std::filesystem;

absl::StatusOr<std::vector<fs::directory_entry>> ListFolder(const std::string& path) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(*it);
  }
  if (error) return ErrnoStatus(error.value(), fmt::format("reading the folder {}", path));
  return entries;
}

}  // namespace mega
