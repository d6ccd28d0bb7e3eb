// The safetensors file format (github.com/huggingface/safetensors): u64 little-endian length of the
// header, a JSON header {name: {dtype, shape, data_offsets}}, then the bytes of the tensors.
// Files come from outside. A reader refuses a header over 100 MiB, a duplicate or unknown key, an
// unknown dtype, a shape that overflows or does not match its offsets, an overlap, a hole, and
// bytes after the end; its memory is bounded by a small multiple of the header.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/tensor_view.h"

namespace mega::checkpoint {

inline constexpr int64_t kMaxSafetensorsHeaderBytes = 100ll << 20;

struct TensorEntry {
  kernels::DType dtype = kernels::DType::kF32;
  kernels::Shape shape;
  // As in the file; only files with a padded header (like ours) are aligned, so memcpy out of it.
  std::span<const std::byte> data;
};

// A file mapped into memory, read only. Movable; spans of its entries live as long as it does.
// The file must not shrink meanwhile: checkpoints are written once and renamed into place.
class SafetensorsFile {
 public:
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);
  // The same checks on bytes that are in memory already and outlive the result; `name` is for
  // errors.
  static absl::StatusOr<SafetensorsFile> Parse(std::span<const std::byte> bytes, std::string name);

  // In the order of the bytes in the file.
  const std::vector<std::string>& names() const { return names_; }
  // Null when the file has no such tensor.
  const TensorEntry* Find(std::string_view name) const;
  // The same, NOT_FOUND naming the file.
  absl::StatusOr<TensorEntry> Get(std::string_view name) const;
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }

 private:
  struct Unmap {
    Unmap() : bytes(0) {}
    explicit Unmap(size_t mapped_bytes) : bytes(mapped_bytes) {}
    size_t bytes;
    void operator()(const std::byte* data) const;
  };
  std::string path_;
  std::unique_ptr<const std::byte, Unmap> mapping_;
  std::vector<std::string> names_;
  std::map<std::string, TensorEntry, std::less<>> entries_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

// What a writer is told before the bytes come.
struct TensorDeclaration {
  std::string name;
  kernels::DType dtype = kernels::DType::kF32;
  kernels::Shape shape;
};

// Length and header, padded with spaces to a multiple of 8. The same arguments give the same bytes.
// INVALID_ARGUMENT for a name that is taken, "__metadata__", or not UTF-8.
absl::StatusOr<std::string> SafetensorsHeader(
    std::span<const TensorDeclaration> tensors,
    const std::map<std::string, std::string, std::less<>>& metadata = {});

// Streams a file: declarations first, then the bytes of all tensors in that order, cut anyhow.
// A failed or abandoned writer leaves a partial file that Open refuses; the caller removes it.
class SafetensorsWriter {
 public:
  // Creates the file or empties it, and writes the header.
  static absl::StatusOr<SafetensorsWriter> Create(
      const std::string& path, std::span<const TensorDeclaration> tensors,
      const std::map<std::string, std::string, std::less<>>& metadata = {});
  SafetensorsWriter(SafetensorsWriter&& other) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&& other) noexcept;
  ~SafetensorsWriter();

  absl::Status Append(std::span<const std::byte> bytes);
  // Checks that every declared byte came, syncs to the disk unless told not to, and closes.
  absl::Status Finish(bool sync = true);
  // Size of the finished file.
  int64_t file_bytes() const { return end_; }

 private:
  SafetensorsWriter() = default;
  std::string path_;
  int fd_ = -1;
  int64_t offset_ = 0;  // of the next byte
  int64_t end_ = 0;
};

}  // namespace mega::checkpoint
