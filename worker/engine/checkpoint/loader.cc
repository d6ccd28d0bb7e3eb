#include "worker/engine/checkpoint/loader.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_join.h"
#include "worker/engine/checkpoint/safetensors.h"

namespace mega::checkpoint {
namespace {

absl::Status CheckSize(const std::string& path, int64_t bytes) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return DataLoss("{}: {}; the checkpoint lacks a file", path, error.message());
  if (static_cast<int64_t>(size) == bytes) return absl::OkStatus();
  return DataLoss("{} has {} bytes but its manifest says {}; the file was cut or replaced", path,
                  size, bytes);
}

// The files of one load, opened when first needed.
class Files {
 public:
  Files(const v1::Manifest& manifest, std::string folder) : folder_(std::move(folder)) {
    for (const v1::CheckpointFile& file : manifest.files()) bytes_[file.name()] = file.bytes();
  }

  // The stored slice's bytes, checked against the manifest.
  absl::StatusOr<std::span<const std::byte>> BytesOf(const v1::TensorSlice& slice,
                                                     const std::string& dtype) {
    const std::string path = folder_ + "/" + slice.file();
    auto open = open_.find(slice.file());
    if (open == open_.end()) {
      MEGA_RETURN_IF_ERROR(CheckSize(path, bytes_.at(slice.file())));
      absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
      if (!file.ok()) return DataLoss("{}", std::string(file.status().message()));
      open = open_.emplace(slice.file(), std::move(*file)).first;
    }
    const TensorEntry* entry = open->second.Find(slice.name_in_file());
    if (entry == nullptr) return DataLoss("{} has no tensor {}", path, slice.name_in_file());
    if (kernels::NameOf(entry->dtype) != dtype) {
      return DataLoss("{} in {} is {} but the manifest says {}", slice.name_in_file(), path,
                      kernels::NameOf(entry->dtype), dtype);
    }
    if (!std::ranges::equal(entry->shape.dims(), slice.shape())) {
      return DataLoss("{} in {} has shape {} but the manifest says [{}]", slice.name_in_file(),
                      path, entry->shape.ToString(), absl::StrJoin(slice.shape(), ", "));
    }
    if (verified_.insert(&slice).second &&
        XXH64(entry->data.data(), entry->data.size(), 0) != slice.xxh64()) {
      return DataLoss("checksum of {} in {} is wrong; the file is damaged", slice.name_in_file(),
                      path);
    }
    return entry->data;
  }

 private:
  const std::string folder_;
  std::map<std::string, int64_t> bytes_;
  std::map<std::string, SafetensorsFile> open_;
  std::set<const v1::TensorSlice*> verified_;
};

using Dims = std::array<int64_t, Shape::kMaxRank>;

// Copies the block of `from` (a slice at from_offset) that overlaps `to` (at to_offset). Returns
// its elements.
int64_t CopyOverlap(const std::byte* from, const Dims& from_offset, const Dims& from_shape,
                    std::byte* to, const Dims& to_offset, const Dims& to_shape, int rank,
                    int64_t element_bytes) {
  Dims begin{}, count{};
  int64_t total = 1;
  for (int d = 0; d < rank; ++d) {
    begin[d] = std::max(from_offset[d], to_offset[d]);
    const int64_t end = std::min(from_offset[d] + from_shape[d], to_offset[d] + to_shape[d]);
    count[d] = end - begin[d];
    if (count[d] <= 0) return 0;
    total *= count[d];
  }
  const int64_t row = (rank == 0 ? 1 : count[rank - 1]) * element_bytes;
  Dims at{};  // within the block, all but the last dimension
  while (true) {
    int64_t source = 0, target = 0;
    for (int d = 0; d < rank; ++d) {
      source = source * from_shape[d] + begin[d] + at[d] - from_offset[d];
      target = target * to_shape[d] + begin[d] + at[d] - to_offset[d];
    }
    std::memcpy(to + target * element_bytes, from + source * element_bytes, row);
    int d = rank - 2;
    for (; d >= 0 && ++at[d] == count[d]; --d) at[d] = 0;
    if (d < 0) return total;
  }
}

template <typename Range>
Dims ToDims(const Range& range) {
  Dims dims{};
  std::copy(range.begin(), range.end(), dims.begin());
  return dims;
}

using Tensors = std::map<std::string, const v1::TensorInfo*>;

// The first of them, and how many more there are: a model has thousands of tensors.
std::string SomeOf(const std::vector<std::string>& all, const char* separator) {
  constexpr size_t kShown = 8;
  if (all.size() <= kShown) return absl::StrJoin(all, separator);
  return fmt::format("{}{}and {} more", absl::StrJoin(all.begin(), all.begin() + kShown, separator),
                     separator, all.size() - kShown);
}

// What is missing or of another shape or type, at once.
absl::Status CheckWanted(const Tensors& tensors, const std::string& folder,
                         std::span<const NamedSlice> into) {
  std::vector<std::string> missing, different;
  for (const NamedSlice& want : into) {
    const auto tensor = tensors.find(want.name);
    if (tensor == tensors.end()) {
      missing.push_back(want.name);
    } else if (!std::ranges::equal(tensor->second->global_shape(), want.global_shape) ||
               tensor->second->dtype() != kernels::NameOf(want.view.dtype())) {
      different.push_back(
          fmt::format("{} is {} [{}] there but {} [{}] here", want.name, tensor->second->dtype(),
                      absl::StrJoin(tensor->second->global_shape(), ", "),
                      kernels::NameOf(want.view.dtype()), absl::StrJoin(want.global_shape, ", ")));
    }
  }
  if (missing.empty() && different.empty()) return absl::OkStatus();
  std::string text = fmt::format("checkpoint {} was made by another model", folder);
  if (!missing.empty()) text += ": it has no " + SomeOf(missing, ", ");
  if (!different.empty()) text += ": " + SomeOf(different, "; ");
  return missing.empty() ? absl::InvalidArgumentError(text) : absl::NotFoundError(text);
}

Tensors TensorsOf(const v1::Manifest& manifest) {
  Tensors tensors;
  for (const v1::TensorInfo& tensor : manifest.tensors()) tensors[tensor.name()] = &tensor;
  return tensors;
}

}  // namespace

absl::Status CheckLoad(const v1::Manifest& manifest, const std::string& folder,
                       std::span<const NamedSlice> into) {
  MEGA_RETURN_IF_ERROR(CheckWanted(TensorsOf(manifest), folder, into));
  double there = 0, wanted = 0;
  for (const v1::CheckpointFile& file : manifest.files()) {
    MEGA_RETURN_IF_ERROR(CheckSize(folder + "/" + file.name(), file.bytes()));
    there += static_cast<double>(file.bytes());
  }
  for (const NamedSlice& want : into) wanted += static_cast<double>(want.view.bytes());
  if (wanted <= there) return absl::OkStatus();
  return DataLoss("the files of checkpoint {} have {:.0f} bytes but its model needs {:.0f}", folder,
                  there, wanted);
}

absl::Status Load(const v1::Manifest& manifest, const std::string& folder,
                  std::span<const NamedSlice> into) {
  const Tensors tensors = TensorsOf(manifest);
  std::map<std::string, std::vector<const v1::TensorSlice*>> stored;
  for (const v1::TensorSlice& slice : manifest.slices()) stored[slice.tensor()].push_back(&slice);

  MEGA_RETURN_IF_ERROR(CheckWanted(tensors, folder, into));
  Files files(manifest, folder);
  for (const NamedSlice& want : into) {
    const int rank = static_cast<int>(want.global_shape.size());
    const Dims to_offset = ToDims(want.offset);
    const Dims to_shape = ToDims(want.view.shape().dims());
    int64_t copied = 0;
    for (const v1::TensorSlice* slice : stored[want.name]) {
      bool overlaps = want.view.elements() > 0;
      for (int d = 0; d < rank; ++d) {
        overlaps = overlaps && slice->offset(d) < to_offset[d] + to_shape[d] &&
                   to_offset[d] < slice->offset(d) + slice->shape(d);
      }
      if (!overlaps) continue;
      MEGA_ASSIGN_OR_RETURN(const auto bytes,
                            files.BytesOf(*slice, tensors.at(want.name)->dtype()));
      copied += CopyOverlap(bytes.data(), ToDims(slice->offset()), ToDims(slice->shape()),
                            want.view.data(), to_offset, to_shape, rank,
                            kernels::SizeOf(want.view.dtype()));
    }
    if (copied != want.view.elements()) {
      return DataLoss("checkpoint {} covers {} of the {} wanted elements of {}", folder, copied,
                      want.view.elements(), want.name);
    }
  }
  return absl::OkStatus();
}

}  // namespace mega::checkpoint
