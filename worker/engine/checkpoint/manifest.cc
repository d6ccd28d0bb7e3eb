#include "worker/engine/checkpoint/manifest.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/atomic_file.h"
#include "manifest/step_folder.h"

namespace mega::checkpoint {
namespace fs = std::filesystem;

absl::Status WriteManifest(const v1::Manifest& manifest, const std::string& folder) {
  v1::Manifest movable = manifest;  // a folder may be moved: it does not name itself
  movable.clear_directory();
  return WriteFileAtomically(folder + "/" + kManifestName, PrintManifest(movable));
}

absl::StatusOr<std::string> FindCheckpoint(const std::string& folder) {
  std::error_code error, ignored;
  if (fs::exists(folder + "/" + kManifestName, error)) return folder;
  if (!fs::is_directory(folder, error)) return NotFound("{} is not a folder", folder);
  std::string best;
  // By when it was committed, so that of several jobs in one folder the latest is meant, not the
  // longest.
  std::tuple<int64_t, int64_t, int64_t> newest = {-1, -1, -1};
  auto it = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied,
                                             error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it.depth() >= 2) it.disable_recursion_pending();
    const std::string name = it->path().filename().string();
    if (!manifest::ParseStepFolderName(name)) continue;
    if (!fs::exists(it->path() / kManifestName, ignored)) continue;
    const absl::StatusOr<v1::Manifest> manifest = ReadManifest(it->path().string());
    if (!manifest.ok()) continue;
    const std::tuple<int64_t, int64_t, int64_t> age = {
        manifest->create_time().seconds(), manifest->create_time().nanos(), manifest->step()};
    if (age > newest) {
      newest = age;
      best = it->path().string();
    }
  }
  // The newest may be among those that were not seen.
  if (error)
    return ErrnoStatus(error.value(), fmt::format("looking for checkpoints in {}", folder));
  if (best.empty()) {
    return NotFound("no complete checkpoint under {} (none has a readable {})", folder,
                    kManifestName);
  }
  return best;
}

}  // namespace mega::checkpoint
