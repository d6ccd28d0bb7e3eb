#include "worker/engine/checkpoint/folder_mark.h"

#include <filesystem>
#include <utility>

#include "base/atomic_file.h"
#include "base/folder.h"
#include "fmt/core.h"

namespace mega::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = ".shared-";

}  // namespace

FolderMark::FolderMark(const std::string& folder, int64_t epoch)
    : folder_(folder), path_(fmt::format("{}/{}{}", folder, kPrefix, epoch)) {}

void FolderMark::Remove() {
  std::error_code error;  // the next attempt's Leave tries again
  if (std::exchange(is_left_, false)) fs::remove(path_, error);
}

absl::Status FolderMark::Leave() {
  std::error_code error;
  MEGA_ASSIGN_OR_RETURN(const auto entries, ListFolder(folder_));
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().filename().string().starts_with(kPrefix)) fs::remove(entry.path(), error);
  }
  MEGA_RETURN_IF_ERROR(WriteFileAtomically(path_, ""));
  is_left_ = true;
  return absl::OkStatus();
}

bool FolderMark::IsThere() const {
  std::error_code error;
  return fs::exists(path_, error);
}

}  // namespace mega::checkpoint
