#include "worker/daemon/checkpoint_removal.h"

#include <filesystem>
#include <system_error>

#include "base/atomic_file.h"
#include "base/folder.h"

namespace mega::daemon {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "manifest.json";

absl::Status Refused(const fs::path& path, const std::error_code& error) {
  return Unavailable("cannot remove {}: {}", path.string(), error.message());
}

// The plain files of a folder. True when nothing else is in it.
absl::StatusOr<bool> RemoveFiles(const fs::path& folder) {
  const auto entries = ListFolder(folder);
  if (!entries.ok()) return Unavailable("{}", std::string(entries.status().message()));
  bool holds_others = false;
  absl::Status first;
  for (const fs::directory_entry& entry : *entries) {
    std::error_code error;
    const fs::file_type type = entry.symlink_status(error).type();
    const bool is_file = type == fs::file_type::regular;
    if (is_file) fs::remove(entry.path(), error);
    if (is_file || type == fs::file_type::none) {
      if (error && first.ok()) first = Refused(entry.path(), error);
    } else if (type != fs::file_type::not_found) {
      holds_others = true;
    }
  }
  MEGA_RETURN_IF_ERROR(first);
  return !holds_others;
}

}  // namespace

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
  if (status.type() == fs::file_type::none) return Refused(folder, error);
  if (status.type() != fs::file_type::directory) {
    return InvalidArgument("'{}' is not removed: it is no folder", order.directory());
  }
  // Without its manifest a folder is no checkpoint any more, however far the rest gets.
  if (fs::remove(folder / kManifest, error); error) return Refused(folder / kManifest, error);
  MEGA_ASSIGN_OR_RETURN(const bool is_empty, RemoveFiles(folder));
  if (!is_empty) {
    return FailedPrecondition(
        "'{}' stays: something that is no part of a checkpoint lies in it. The checkpoint's own "
        "files are removed",
        order.directory());
  }
  if (fs::remove(folder, error); error) return Refused(folder, error);
  const absl::Status synced = SyncFolder(folder.parent_path());
  return synced.ok() ? synced : Unavailable("{}", std::string(synced.message()));
}

}  // namespace mega::daemon
