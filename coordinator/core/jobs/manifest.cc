#include "coordinator/core/jobs/manifest.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mega::core {
namespace {

constexpr int kDimensions = 16;

// Elements of a shape; nullopt when an extent is negative or the product does not fit.
template <typename Shape>
std::optional<int64_t> Count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

bool IsPlainFileName(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\0') != name.npos) return false;
  while (true) {
    const size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == name.npos) return true;
    name.remove_prefix(slash + 1);
  }
}

template <typename Shape>
std::string Text(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status CheckInside(const v1::TensorSlice& slice, const v1::TensorInfo& tensor) {
  const int dims = tensor.global_shape_size();
  bool is_inside = slice.offset_size() == dims && slice.shape_size() == dims;
  for (int d = 0; is_inside && d < dims; ++d) {
    // Written so that no sum can overflow.
    is_inside = slice.offset(d) >= 0 && slice.shape(d) >= 0 &&
                slice.shape(d) <= tensor.global_shape(d) &&
                slice.offset(d) <= tensor.global_shape(d) - slice.shape(d);
  }
  if (is_inside) return absl::OkStatus();
  return InvalidArgument("a slice of '{}' at {} of shape {} is not inside {}", slice.tensor(),
                         Text(slice.offset()), Text(slice.shape()), Text(tensor.global_shape()));
}

bool Overlap(const v1::TensorSlice& a, const v1::TensorSlice& b) {
  for (int d = 0; d < a.offset_size(); ++d) {
    if (a.offset(d) + a.shape(d) <= b.offset(d) || b.offset(d) + b.shape(d) <= a.offset(d)) {
      return false;
    }
  }
  return true;
}

// Exactly once: the slices are inside and disjoint, and their sizes add up. Swept along the first
// dimension, so that only slices that share rows are compared.
absl::Status CheckCover(const v1::TensorInfo& tensor, std::vector<const v1::TensorSlice*> slices) {
  const std::optional<int64_t> size = Count(tensor.global_shape());
  if (!size || tensor.global_shape_size() > kDimensions) {
    return InvalidArgument("tensor '{}' has an impossible shape", tensor.name());
  }
  int64_t covered = 0;
  for (const v1::TensorSlice* slice : slices) {
    MEGA_RETURN_IF_ERROR(CheckInside(*slice, tensor));
    if (__builtin_add_overflow(covered, *Count(slice->shape()), &covered) || covered > *size) {
      return InvalidArgument("the slices of '{}' cover more than its {} elements", tensor.name(),
                             *size);
    }
  }
  if (covered != *size) {
    return InvalidArgument("the slices of '{}' cover {} of its {} elements", tensor.name(), covered,
                           *size);
  }
  std::erase_if(slices, [](const v1::TensorSlice* s) { return *Count(s->shape()) == 0; });
  if (tensor.global_shape().empty()) return absl::OkStatus();  // a scalar: the sizes say it all
  std::ranges::sort(slices, {}, [](const v1::TensorSlice* s) { return s->offset(0); });
  std::vector<const v1::TensorSlice*> open;
  for (const v1::TensorSlice* slice : slices) {
    std::erase_if(open, [&](const v1::TensorSlice* o) {
      return o->offset(0) + o->shape(0) <= slice->offset(0);
    });
    for (const v1::TensorSlice* other : open) {
      if (!Overlap(*slice, *other)) continue;
      return InvalidArgument("two slices of '{}', at {} and {}, overlap", tensor.name(),
                             Text(other->offset()), Text(slice->offset()));
    }
    open.push_back(slice);
  }
  return absl::OkStatus();
}

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
      if (!IsPlainFileName(file.name()) || !files_.insert(file.name()).second || file.bytes() < 0 ||
          __builtin_add_overflow(manifest_.total_bytes(), file.bytes(), &total)) {
        return InvalidArgument(
            "file '{}' ({} bytes) of rank {} has an impossible name or size, or "
            "was written twice",
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
      slices_[slice.tensor()].push_back(&slice);
      *manifest_.add_slices() = slice;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<v1::Manifest> Finish() && {
    for (const auto& [name, slices] : slices_) {
      if (!tensors_.contains(name)) {
        return InvalidArgument("there are slices of '{}', but no rank says what tensor it is",
                               name);
      }
    }
    for (const auto& [name, tensor] : tensors_) {
      MEGA_RETURN_IF_ERROR(CheckCover(tensor, slices_[name]));
      *manifest_.add_tensors() = tensor;
    }
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
                           first.dtype(), Text(first.global_shape()), tensor.dtype(),
                           Text(tensor.global_shape()));
  }

  v1::Manifest manifest_;
  std::map<std::string, v1::TensorInfo> tensors_;
  std::map<std::string, std::vector<const v1::TensorSlice*>> slices_;
  std::set<std::string_view> files_;
};

}  // namespace

absl::StatusOr<v1::Manifest> AssembleManifest(const std::vector<const v1::CheckpointPart*>& parts) {
  if (parts.empty()) return InvalidArgument("a checkpoint without parts");
  Assembly assembly;
  for (const v1::CheckpointPart* part : parts) MEGA_RETURN_IF_ERROR(assembly.Add(*part));
  MEGA_ASSIGN_OR_RETURN(v1::Manifest manifest, std::move(assembly).Finish());
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
  return manifest;
}

}  // namespace mega::core
