#include "worker/engine/checkpoint/leftovers.h"

#include <filesystem>
#include <optional>

#include "base/folder.h"
#include "manifest/kept.h"
#include "manifest/slice_file.h"
#include "manifest/step_folder.h"
#include "worker/engine/checkpoint/manifest.h"
#include "worker/engine/checkpoint/writer.h"

namespace mega::checkpoint {
namespace {

namespace fs = std::filesystem;

struct Removal {
  int64_t attempt = 0;
  int64_t member = 0;
  int64_t members = 1;
};

template <typename IsWanted>
Leftovers RemoveFrom(const std::string& directory, const Removal& removal, IsWanted is_wanted) {
  Leftovers removed;
  const auto folders = ListFolder(directory);
  if (!folders.ok()) return removed;
  std::error_code error;
  for (const fs::directory_entry& folder : *folders) {
    const std::optional<int64_t> step =
        manifest::ParseStepFolderName(folder.path().filename().string());
    if (!step || is_wanted(*step)) continue;
    if (!fs::is_directory(folder.symlink_status(error))) continue;
    if (fs::exists(folder.path() / kManifestName, error) || error) continue;
    const auto files = ListFolder(folder.path());
    if (!files.ok()) continue;
    for (const fs::directory_entry& file : *files) {
      const auto origin = manifest::ParseSliceFileName(file.path().filename().string());
      if (!origin || origin->attempt >= removal.attempt) continue;
      if (origin->rank % removal.members != removal.member) continue;
      if (!fs::is_regular_file(file.symlink_status(error))) continue;
      const auto bytes = fs::file_size(file.path(), error);
      if (!fs::remove(file.path(), error)) continue;
      ++removed.files;
      removed.bytes += static_cast<int64_t>(bytes);
    }
    // The ranks before have taken theirs; the last one to come finds it empty.
    if (fs::is_empty(folder.path(), error) && !error) fs::remove(folder.path(), error);
  }
  return removed;
}

}  // namespace

Leftovers RemoveLeftovers(const std::string& directory, int64_t committed_step, int64_t attempt,
                          int64_t member, int64_t members) {
  return RemoveFrom(directory, {.attempt = attempt, .member = member, .members = members},
                    [&](int64_t step) { return step <= committed_step; });
}

Leftovers RemoveOvertaken(const std::string& directory, const std::set<int64_t>& kept,
                          int64_t attempt, int64_t member, int64_t members) {
  if (kept.empty()) return {};
  const int64_t first = kept.size() < manifest::kMostTold ? 0 : *kept.begin();
  const int64_t last = *kept.rbegin();
  return RemoveFrom(
      directory, {.attempt = attempt, .member = member, .members = members},
      [&](int64_t step) { return step < first || step >= last || kept.contains(step); });
}

}  // namespace mega::checkpoint
