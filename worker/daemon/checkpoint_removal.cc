#include "worker/daemon/checkpoint_removal.h"

#include <filesystem>
#include <system_error>

namespace mega::daemon {

namespace fs = std::filesystem;

absl::Status RemoveCheckpoint(const v1::DeleteCheckpoint& order) {
  const fs::path folder(order.directory());
  const std::string expected = fmt::format("step-{:08d}", order.step());
  if (!folder.is_absolute() || folder.filename() != expected) {
    return InvalidArgument("'{}' is not removed: the checkpoint of step {} lies in a folder {}",
                           order.directory(), order.step(), expected);
  }
  std::error_code error;
  const fs::file_status status = fs::symlink_status(folder, error);
  if (status.type() == fs::file_type::not_found) return absl::OkStatus();
  if (status.type() != fs::file_type::directory) {
    return InvalidArgument("'{}' is not removed: it is no folder", order.directory());
  }
  // Without its manifest a folder is no checkpoint any more, however far the rest gets.
  fs::remove(folder / "manifest.json", error);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (fs::is_regular_file(entry.symlink_status(error))) fs::remove(entry.path(), error);
  }
  fs::remove(folder, error);
  if (error) {
    return ErrnoStatus(error.value(), fmt::format("cannot remove all of {}", order.directory()));
  }
  return absl::OkStatus();
}

}  // namespace mega::daemon
