// A job that went back saves a step again in the same folder, and an order may come late: from a
// worker that was away, or from a disk that refused for a while. So each try looks anew at whose
// the folder is.
#include "worker/daemon/checkpoint_removal.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "base/atomic_file.h"
#include "base/folder.h"
#include "manifest/manifest_file.h"
#include "manifest/slice_file.h"
#include "manifest/step_folder.h"

namespace mega::daemon {
namespace {

namespace fs = std::filesystem;

using manifest::kManifestName;

// An order of release 0.1 does not say who saved the checkpoint.
bool IsOfAnybody(const v1::DeleteCheckpoint& order) { return order.epoch() == 0; }

absl::Status Refused(const fs::path& path, const std::error_code& error) {
  return Unavailable("cannot remove {}: {}", path.string(), error.message());
}

// Nothing: there is none, or nobody can load by it.
absl::StatusOr<std::optional<v1::Manifest>> ManifestIn(const fs::path& folder) {
  absl::StatusOr<v1::Manifest> manifest = manifest::ReadManifest(folder.string());
  if (manifest.ok()) return std::optional(*std::move(manifest));
  if (absl::IsNotFound(manifest.status()) || absl::IsInvalidArgument(manifest.status())) {
    return std::nullopt;
  }
  return Unavailable("{}", std::string(manifest.status().message()));
}

// What of a folder may go: all of it, until a later attempt saves there.
struct Share {
  bool is_all = true;
  bool has_manifest = true;
  int64_t last_attempt = 0;      // unless it is all, slices up to this attempt's
  std::set<std::string> listed;  // but not these, of a later manifest

  // The manifest goes before all others, and by itself.
  bool Holds(const fs::directory_entry& file) const {
    const std::string name = file.path().filename().string();
    if (is_all) return name != kManifestName;
    const auto slice = manifest::ParseSliceFileName(name);
    return slice && slice->attempt <= last_attempt && !listed.contains(name);
  }
};

Share ShareOf(const v1::DeleteCheckpoint& order, const std::optional<v1::Manifest>& manifest,
              const std::vector<fs::directory_entry>& entries) {
  const bool is_later = manifest && manifest->epoch() > order.epoch();
  const auto is_of_later = [&](const fs::directory_entry& entry) {
    const auto slice = manifest::ParseSliceFileName(entry.path().filename().string());
    return slice && slice->attempt > order.attempt();
  };
  if (!is_later && std::ranges::none_of(entries, is_of_later)) return {};
  Share share{.is_all = false,
              .has_manifest = manifest && !is_later,
              .last_attempt = order.attempt(),
              .listed = {}};
  if (is_later) {
    for (const v1::CheckpointFile& file : manifest->files()) share.listed.insert(file.name());
  }
  return share;
}

// The plain files of the share. True when nothing but plain files is there.
absl::StatusOr<bool> RemoveFiles(const std::vector<fs::directory_entry>& entries,
                                 const Share& share) {
  bool holds_others = false;
  absl::Status first;
  for (const fs::directory_entry& entry : entries) {
    std::error_code error;
    const fs::file_type type = entry.symlink_status(error).type();
    const bool is_file = type == fs::file_type::regular;
    if (is_file && !share.Holds(entry)) continue;
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
  const std::string expected = manifest::StepFolderName(order.step());
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
  std::optional<v1::Manifest> manifest;
  if (!IsOfAnybody(order)) {
    MEGA_ASSIGN_OR_RETURN(manifest, ManifestIn(folder));
  }
  if (manifest && manifest->job_uid() != order.job_uid()) {
    return FailedPrecondition("'{}' stays: the checkpoint in it is of another job",
                              order.directory());
  }
  // After the manifest was read: whoever has not begun to save by now has no manifest yet.
  const auto entries = ListFolder(folder);
  if (!entries.ok()) return Unavailable("{}", std::string(entries.status().message()));
  const Share share = IsOfAnybody(order) ? Share() : ShareOf(order, manifest, *entries);
  // Without its manifest a folder is no checkpoint any more, however far the rest gets.
  if (share.has_manifest) {
    if (fs::remove(folder / kManifestName, error); error) {
      return Refused(folder / kManifestName, error);
    }
  }
  MEGA_ASSIGN_OR_RETURN(const bool is_empty, RemoveFiles(*entries, share));
  if (!share.is_all) return absl::OkStatus();
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
