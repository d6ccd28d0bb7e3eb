#include "manifest/validate.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "manifest/cover.h"
#include "manifest/file_name.h"

namespace mega::manifest {

namespace {

// Names are in every message about what they name. A model's are of tens of bytes; those in a file
// hold a slice's offsets besides.
constexpr size_t kMostNameBytes = 1024;
constexpr size_t kShownBytes = 256;

absl::Status CheckName(const char* what, const std::string& name) {
  if (name.size() <= kMostNameBytes) return absl::OkStatus();
  return InvalidArgument("{} of {} bytes, '{}…', is too long; at most {} are possible", what,
                         name.size(), CutUtf8(name, kShownBytes), kMostNameBytes);
}

}  // namespace

absl::Status Validate(const v1::Manifest& manifest) {
  if (manifest.version() != 1) {
    return InvalidArgument("manifest version is {}; this release reads version 1",
                           manifest.version());
  }
  if (manifest.step() < 0 || manifest.state().step() != manifest.step()) {
    return InvalidArgument("manifest is of step {} but its trainer state of step {}",
                           manifest.step(), manifest.state().step());
  }
  // A trainer counts on from these.
  constexpr int64_t kMostCounted = int64_t{1} << 60;
  for (const auto& [name, count] :
       {std::pair{"consumed_samples", manifest.state().consumed_samples()},
        std::pair{"consumed_tokens", manifest.state().consumed_tokens()}}) {
    if (count < 0 || count > kMostCounted) {
      return InvalidArgument("{} of the trainer state is {}; it is from 0 to 2^60", name, count);
    }
  }
  std::set<std::string> files;
  for (const v1::CheckpointFile& file : manifest.files()) {
    if (!IsFileName(file.name())) {
      return InvalidArgument("file name '{}' is not a plain name",
                             CutUtf8(file.name(), kShownBytes));
    }
    if (file.bytes() < 0) {
      return InvalidArgument("file {} is said to have {} bytes", file.name(), file.bytes());
    }
    if (!files.insert(file.name()).second) {
      return InvalidArgument("file {} is listed twice", file.name());
    }
  }
  std::map<std::string, std::vector<const v1::TensorSlice*>> slices;
  for (const v1::TensorInfo& tensor : manifest.tensors()) {
    MEGA_RETURN_IF_ERROR(CheckName("the name of a tensor", tensor.name()));
    MEGA_RETURN_IF_ERROR(CheckName("the dtype of a tensor", tensor.dtype()));
    if (!slices.try_emplace(tensor.name()).second) {
      return InvalidArgument("tensor {} is listed twice", tensor.name());
    }
  }
  for (const v1::TensorSlice& slice : manifest.slices()) {
    MEGA_RETURN_IF_ERROR(CheckName("the tensor of a slice", slice.tensor()));
    MEGA_RETURN_IF_ERROR(CheckName("the file of a slice", slice.file()));
    MEGA_RETURN_IF_ERROR(CheckName("the name in its file of a slice", slice.name_in_file()));
    const auto tensor = slices.find(slice.tensor());
    if (tensor == slices.end()) {
      return InvalidArgument("a slice belongs to tensor {}, which the manifest does not list",
                             slice.tensor());
    }
    if (!files.contains(slice.file())) {
      return InvalidArgument("a slice of {} lies in {}, which the manifest does not list",
                             slice.tensor(), slice.file());
    }
    tensor->second.push_back(&slice);
  }
  for (const v1::TensorInfo& tensor : manifest.tensors()) {
    MEGA_RETURN_IF_ERROR(CheckCover(tensor, slices[tensor.name()]));
  }
  return absl::OkStatus();
}

}  // namespace mega::manifest
