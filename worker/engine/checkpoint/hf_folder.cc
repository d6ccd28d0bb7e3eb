#include "worker/engine/checkpoint/hf_folder.h"

#include "base/read_file.h"
#include "worker/engine/checkpoint/hf_index.h"

namespace mega::checkpoint {
namespace {

constexpr char kSingle[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";

}  // namespace

absl::StatusOr<HfFolder> HfFolder::Open(const std::string& folder) {
  HfFolder result;
  result.folder_ = folder;
  const std::string path = folder + "/" + kIndex;
  const absl::StatusOr<std::string> text = ReadRegularFile(path, kMaxIndexBytes);
  if (!absl::IsNotFound(text.status())) {
    MEGA_RETURN_IF_ERROR(text.status());
    MEGA_ASSIGN_OR_RETURN(result.file_of_, ParseHfIndex(*text, path));
    for (const auto& [tensor, name] : result.file_of_) {
      auto file = result.files_.find(name);
      if (file == result.files_.end()) {
        MEGA_ASSIGN_OR_RETURN(SafetensorsFile opened, SafetensorsFile::Open(folder + "/" + name));
        file = result.files_.emplace(name, std::move(opened)).first;
      }
      if (file->second.Find(tensor) == nullptr) {
        return DataLoss("{}/{} says that {} has tensor {}, but it has not", folder, kIndex, name,
                        tensor);
      }
    }
    return result;
  }
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(folder + "/" + kSingle);
  if (absl::IsNotFound(file.status())) {
    return NotFound("{} has neither {} nor {}", folder, kSingle, kIndex);
  }
  MEGA_RETURN_IF_ERROR(file.status());
  for (const std::string& tensor : file->names()) result.file_of_[tensor] = kSingle;
  result.files_.emplace(kSingle, *std::move(file));
  return result;
}

std::vector<std::string> HfFolder::names() const {
  std::vector<std::string> names;
  for (const auto& [tensor, file] : file_of_) names.push_back(tensor);
  return names;
}

absl::StatusOr<TensorEntry> HfFolder::Get(const std::string& name) const {
  const auto file = file_of_.find(name);
  if (file == file_of_.end()) return NotFound("{} has no tensor {}", folder_, name);
  return files_.at(file->second).Get(name);
}

}  // namespace mega::checkpoint
