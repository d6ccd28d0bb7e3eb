#pragma once

#include <vector>

#include "mega/v1/checkpoint.pb.h"

namespace mega {

// Two files; w [4, 6] in four quarters, b [3] whole.
inline v1::Manifest GoodManifest() {
  v1::Manifest manifest;
  manifest.set_version(1);
  manifest.set_step(12);
  manifest.mutable_state()->set_step(12);
  manifest.mutable_state()->set_consumed_samples(int64_t{1} << 60);
  for (const char* name : {"a.safetensors", "b.safetensors"}) {
    v1::CheckpointFile& file = *manifest.add_files();
    file.set_name(name);
    file.set_bytes(1000);
    file.set_xxh64(~uint64_t{0});
  }
  const auto tensor = [&](const char* name, std::vector<int64_t> shape) {
    v1::TensorInfo& info = *manifest.add_tensors();
    info.set_name(name);
    info.set_dtype("F32");
    info.mutable_global_shape()->Add(shape.begin(), shape.end());
  };
  const auto slice = [&](const char* name, std::vector<int64_t> offset, std::vector<int64_t> shape,
                         const char* file) {
    v1::TensorSlice& entry = *manifest.add_slices();
    entry.set_tensor(name);
    entry.mutable_offset()->Add(offset.begin(), offset.end());
    entry.mutable_shape()->Add(shape.begin(), shape.end());
    entry.set_file(file);
    entry.set_name_in_file(name);
  };
  tensor("w", {4, 6});
  tensor("b", {3});
  slice("w", {0, 0}, {2, 3}, "a.safetensors");
  slice("w", {0, 3}, {2, 3}, "b.safetensors");
  slice("w", {2, 0}, {2, 3}, "a.safetensors");
  slice("w", {2, 3}, {2, 3}, "b.safetensors");
  slice("b", {0}, {3}, "b.safetensors");
  return manifest;
}

}  // namespace mega
