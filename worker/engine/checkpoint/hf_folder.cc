#include "worker/engine/checkpoint/hf_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "worker/engine/checkpoint/durable_file.h"

namespace mega::checkpoint {
namespace {

constexpr char kSingle[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr int64_t kMaxIndexBytes = 64 << 20;

absl::StatusOr<std::map<std::string, std::string>> ReadIndex(const std::string& path) {
  MEGA_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kMaxIndexBytes));
  const nlohmann::json index = nlohmann::json::parse(text, nullptr, false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return InvalidArgument("{} is not an index: it has no object weight_map", path);
  }
  std::map<std::string, std::string> file_of;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos) {
      return InvalidArgument("{}: weight_map[{}] is not the name of a file", path, tensor);
    }
    file_of[tensor] = file.get<std::string>();
  }
  return file_of;
}

}  // namespace

absl::StatusOr<HfFolder> HfFolder::Open(const std::string& folder) {
  HfFolder result;
  result.folder_ = folder;
  if (std::filesystem::exists(folder + "/" + kIndex)) {
    MEGA_ASSIGN_OR_RETURN(result.file_of_, ReadIndex(folder + "/" + kIndex));
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
  if (!std::filesystem::exists(folder + "/" + kSingle)) {
    return NotFound("{} has neither {} nor {}", folder, kSingle, kIndex);
  }
  MEGA_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(folder + "/" + kSingle));
  for (const std::string& tensor : file.names()) result.file_of_[tensor] = kSingle;
  result.files_.emplace(kSingle, std::move(file));
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
