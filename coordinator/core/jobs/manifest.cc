#include "coordinator/core/jobs/manifest.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/message_size.h"
#include "manifest/shape_text.h"
#include "manifest/validate.h"

namespace mega::core {
namespace {

// Half a message: a StartRanks carries it beside the plan and the spec.
constexpr size_t kMostManifestBytes = kMostMessageBytes / 2;

// What the parts say, put together and checked one against another.
class Assembly {
 public:
  absl::Status Add(const v1::CheckpointPart& part) {
    if (manifest_.directory().empty()) manifest_.set_directory(part.directory());
    if (part.directory() != manifest_.directory() || !part.directory().starts_with('/')) {
      return InvalidArgument(
          "rank {} wrote to '{}', rank 0 to '{}'; they must be one absolute "
          "folder that all ranks share",
          part.rank(), part.directory(), manifest_.directory());
    }
    std::set<std::string_view> files;
    for (const v1::CheckpointFile& file : part.files()) {
      int64_t total = 0;
      if (!files_.insert(file.name()).second || file.bytes() < 0 ||
          __builtin_add_overflow(manifest_.total_bytes(), file.bytes(), &total)) {
        return InvalidArgument(
            "file '{}' ({} bytes) of rank {} has an impossible size, or was written twice",
            file.name(), file.bytes(), part.rank());
      }
      manifest_.set_total_bytes(total);
      *manifest_.add_files() = file;
      files.insert(file.name());
    }
    for (const v1::TensorInfo& tensor : part.tensors()) MEGA_RETURN_IF_ERROR(AddTensor(tensor));
    for (const v1::TensorSlice& slice : part.slices()) {
      if (!files.contains(slice.file())) {
        return InvalidArgument("a slice of '{}' is said to be in '{}', which rank {} did not write",
                               slice.tensor(), slice.file(), part.rank());
      }
      *manifest_.add_slices() = slice;
    }
    return absl::OkStatus();
  }

  v1::Manifest Finish() && {
    for (auto& [name, tensor] : tensors_) *manifest_.add_tensors() = std::move(tensor);
    return std::move(manifest_);
  }

 private:
  absl::Status AddTensor(const v1::TensorInfo& tensor) {
    const auto [known, is_new] = tensors_.try_emplace(tensor.name(), tensor);
    const v1::TensorInfo& first = known->second;
    if (is_new || (first.dtype() == tensor.dtype() &&
                   std::ranges::equal(first.global_shape(), tensor.global_shape()))) {
      return absl::OkStatus();
    }
    return InvalidArgument("ranks disagree on tensor '{}': {} {} and {} {}", tensor.name(),
                           first.dtype(), manifest::ShapeText(first.global_shape()), tensor.dtype(),
                           manifest::ShapeText(tensor.global_shape()));
  }

  v1::Manifest manifest_;
  std::map<std::string, v1::TensorInfo> tensors_;
  std::set<std::string_view> files_;
};

}  // namespace

absl::StatusOr<v1::Manifest> AssembleManifest(const std::vector<const v1::CheckpointPart*>& parts) {
  if (parts.empty()) return InvalidArgument("a checkpoint without parts");
  Assembly assembly;
  for (const v1::CheckpointPart* part : parts) MEGA_RETURN_IF_ERROR(assembly.Add(*part));
  v1::Manifest manifest = std::move(assembly).Finish();
  const v1::CheckpointPart& first = *parts.front();
  if (!first.has_state() || first.state().step() != first.step()) {
    return InvalidArgument(
        "rank 0 says the trainer's state is of step {}, the checkpoint is of step "
        "{}",
        first.state().step(), first.step());
  }
  manifest.set_version(1);
  manifest.set_job_uid(first.job_uid());
  manifest.set_attempt(first.attempt());
  manifest.set_epoch(first.epoch());
  manifest.set_step(first.step());
  *manifest.mutable_state() = first.state();
  MEGA_RETURN_IF_ERROR(manifest::Validate(manifest));
  if (const size_t bytes = manifest.ByteSizeLong(); bytes > kMostManifestBytes) {
    return InvalidArgument(
        "its manifest of {} slices and {} tensors has {} bytes, and at most {} fit a message to a "
        "worker; use fewer shards a tensor",
        manifest.slices_size(), manifest.tensors_size(), bytes, kMostManifestBytes);
  }
  return manifest;
}

void DropTensors(v1::Manifest& manifest) {
  manifest.clear_tensors();
  manifest.clear_slices();
}

}  // namespace mega::core
