#include "worker/engine/checkpoint/manifest.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/read_file.h"

namespace mega::checkpoint {
namespace {
namespace fs = std::filesystem;

constexpr int kMaxDimensions = 6;
constexpr int64_t kMaxElements = int64_t{1} << 50;
// A hostile manifest must not cost quadratic time; an honest one is cut along few dimensions.
constexpr int64_t kMaxComparisons = 50'000'000;

bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

absl::StatusOr<int64_t> ElementsOf(const std::string& tensor,
                                   const google::protobuf::RepeatedField<int64_t>& shape) {
  if (shape.size() > kMaxDimensions) {
    return InvalidArgument("tensor {} has {} dimensions; at most {} are possible", tensor,
                           shape.size(), kMaxDimensions);
  }
  int64_t elements = 1;
  for (const int64_t dim : shape) {
    if (dim < 0 || (dim > 0 && elements > kMaxElements / dim)) {
      return InvalidArgument("tensor {} has a dimension of {}, negative or too large", tensor, dim);
    }
    elements *= dim;
  }
  return elements;
}

absl::Status CheckInside(const v1::TensorSlice& slice, const v1::TensorInfo& tensor) {
  const int rank = tensor.global_shape_size();
  if (slice.offset_size() != rank || slice.shape_size() != rank) {
    return InvalidArgument("a slice of {} in {} has {} dimensions; the tensor has {}",
                           tensor.name(), slice.file(), slice.shape_size(), rank);
  }
  for (int d = 0; d < rank; ++d) {
    if (slice.offset(d) < 0 || slice.shape(d) < 0 || slice.shape(d) > tensor.global_shape(d) ||
        slice.offset(d) > tensor.global_shape(d) - slice.shape(d)) {
      return InvalidArgument("a slice of {} in {} covers [{}, +{}) of dimension {}, which has {}",
                             tensor.name(), slice.file(), slice.offset(d), slice.shape(d), d,
                             tensor.global_shape(d));
    }
  }
  return absl::OkStatus();
}

bool Overlap(const v1::TensorSlice& a, const v1::TensorSlice& b) {
  for (int d = 0; d < a.offset_size(); ++d) {
    if (a.offset(d) + a.shape(d) <= b.offset(d) || b.offset(d) + b.shape(d) <= a.offset(d)) {
      return false;
    }
  }
  return true;
}

// Slices inside the tensor, none overlapping, as many elements as the tensor: each exactly once.
absl::Status CheckCover(const v1::TensorInfo& tensor,
                        const std::vector<const v1::TensorSlice*>& slices, int64_t& comparisons) {
  MEGA_ASSIGN_OR_RETURN(const int64_t elements, ElementsOf(tensor.name(), tensor.global_shape()));
  int64_t covered = 0;
  std::vector<const v1::TensorSlice*> filled;
  for (const v1::TensorSlice* slice : slices) {
    MEGA_RETURN_IF_ERROR(CheckInside(*slice, tensor));
    int64_t size = 1;
    for (const int64_t dim : slice->shape()) size *= dim;
    if (size == 0) continue;
    if (size > elements - covered) {
      return InvalidArgument("the slices of {} have more elements than its {}", tensor.name(),
                             elements);
    }
    covered += size;
    filled.push_back(slice);
  }
  if (covered != elements) {
    return InvalidArgument("the slices of {} cover {} of its {} elements", tensor.name(), covered,
                           elements);
  }
  if (tensor.global_shape_size() == 0) return absl::OkStatus();
  std::sort(filled.begin(), filled.end(),
            [](const auto* a, const auto* b) { return a->offset(0) < b->offset(0); });
  for (size_t i = 0; i < filled.size(); ++i) {
    const int64_t end = filled[i]->offset(0) + filled[i]->shape(0);
    for (size_t j = i + 1; j < filled.size() && filled[j]->offset(0) < end; ++j) {
      if (++comparisons > kMaxComparisons) {
        return InvalidArgument("the slices of {} are cut too finely to be checked", tensor.name());
      }
      if (Overlap(*filled[i], *filled[j])) {
        return InvalidArgument("two slices of {} overlap, in {} and {}", tensor.name(),
                               filled[i]->file(), filled[j]->file());
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateManifest(const v1::Manifest& manifest) {
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
    if (!IsPlainName(file.name())) {
      return InvalidArgument("file name '{}' is not a plain name", file.name());
    }
    if (!files.insert(file.name()).second) {
      return InvalidArgument("file {} is listed twice", file.name());
    }
  }
  std::map<std::string, std::vector<const v1::TensorSlice*>> slices;
  for (const v1::TensorInfo& tensor : manifest.tensors()) {
    if (!slices.try_emplace(tensor.name()).second) {
      return InvalidArgument("tensor {} is listed twice", tensor.name());
    }
  }
  for (const v1::TensorSlice& slice : manifest.slices()) {
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
  int64_t comparisons = 0;
  for (const v1::TensorInfo& tensor : manifest.tensors()) {
    MEGA_RETURN_IF_ERROR(CheckCover(tensor, slices[tensor.name()], comparisons));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Manifest> ParseManifest(std::string_view json) {
  if (static_cast<int64_t>(json.size()) > kMaxManifestBytes) {
    return InvalidArgument("the manifest has {} bytes, more than {}", json.size(),
                           kMaxManifestBytes);
  }
  v1::Manifest manifest;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // a later release may add some
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &manifest, options);
  if (!parsed.ok()) return InvalidArgument("not a manifest: {}", parsed.ToString());
  MEGA_RETURN_IF_ERROR(ValidateManifest(manifest));
  return manifest;
}

std::string PrintManifest(const v1::Manifest& manifest) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto printed = google::protobuf::util::MessageToJsonString(manifest, &json, options);
  MEGA_CHECK_OK(printed);
  return json;
}

absl::StatusOr<v1::Manifest> ReadManifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  MEGA_ASSIGN_OR_RETURN(const std::string json, ReadRegularFile(path, kMaxManifestBytes));
  absl::StatusOr<v1::Manifest> manifest = ParseManifest(json);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  manifest->set_directory(folder);
  return manifest;
}

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
    if (name.rfind("step-", 0) != 0 || !fs::exists(it->path() / kManifestName, ignored)) continue;
    const absl::StatusOr<v1::Manifest> manifest = ReadManifest(it->path().string());
    if (!manifest.ok()) continue;
    const std::tuple<int64_t, int64_t, int64_t> age = {
        manifest->create_time().seconds(), manifest->create_time().nanos(), manifest->step()};
    if (age > newest) {
      newest = age;
      best = it->path().string();
    }
  }
  if (best.empty()) {
    return NotFound("no complete checkpoint under {} (none has a readable {})", folder,
                    kManifestName);
  }
  return best;
}

}  // namespace mega::checkpoint
