// Weights of a Hugging Face folder: model.safetensors, or the shards that
// model.safetensors.index.json names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "worker/engine/checkpoint/safetensors.h"

namespace mega::checkpoint {

class HfFolder {
 public:
  // Every tensor of the index must be in the shard the index names.
  static absl::StatusOr<HfFolder> Open(const std::string& folder);

  std::vector<std::string> names() const;
  // Valid as long as the folder object. NOT_FOUND names tensor and folder.
  absl::StatusOr<TensorEntry> Get(const std::string& name) const;

 private:
  std::string folder_;
  std::map<std::string, SafetensorsFile> files_;  // by file name
  std::map<std::string, std::string> file_of_;    // tensor → file name
};

}  // namespace mega::checkpoint
