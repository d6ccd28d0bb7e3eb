#include "worker/engine/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/read_file.h"
#include "worker/engine/checkpoint/safetensors_header.h"

namespace mega::checkpoint {
namespace {

absl::Status WriteAll(int fd, std::span<const std::byte> bytes, int64_t offset,
                      const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, fmt::format("{}: write at {}", path, offset));
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
  return absl::OkStatus();
}

}  // namespace

void SafetensorsFile::Unmap::operator()(const std::byte* data) const {
  if (bytes > 0) munmap(const_cast<std::byte*>(data), bytes);
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  int64_t file_bytes = 0;
  MEGA_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(path, &file_bytes));
  if (file_bytes == 0) return DataLoss("{} is empty; a safetensors file has a header", path);
  const auto size = static_cast<size_t>(file_bytes);
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (mapped == MAP_FAILED) return ErrnoStatus(errno, fmt::format("{}: mmap", path));
  std::unique_ptr<const std::byte, Unmap> mapping(static_cast<const std::byte*>(mapped),
                                                  Unmap(size));
  MEGA_ASSIGN_OR_RETURN(SafetensorsFile file, Parse({mapping.get(), size}, path));
  file.mapping_ = std::move(mapping);
  return file;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Parse(std::span<const std::byte> bytes,
                                                       std::string name) {
  if (bytes.size() < 8)
    return DataLoss("{} has {} bytes; the header's length takes 8", name, bytes.size());
  uint64_t length = 0;
  for (int i = 0; i < 8; ++i) length |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  bytes = bytes.subspan(8);
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes) || length > bytes.size())
    return DataLoss("{} says its header has {} bytes; {} are there and {} allowed", name, length,
                    bytes.size(), kMaxSafetensorsHeaderBytes);
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()), length);
  bytes = bytes.subspan(length);
  absl::StatusOr<SafetensorsContents> contents =
      ReadHeader(header, static_cast<int64_t>(bytes.size()));
  if (!contents.ok()) return Annotate(contents.status(), name);

  SafetensorsFile file;
  file.path_ = std::move(name);
  file.names_ = std::move(contents->names);
  file.metadata_ = std::move(contents->metadata);
  for (const auto& [tensor, entry] : contents->entries)
    file.entries_.emplace(tensor, TensorEntry{entry.dtype, entry.shape,
                                              bytes.subspan(entry.begin, entry.end - entry.begin)});
  return file;
}

const TensorEntry* SafetensorsFile::Find(std::string_view name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

absl::StatusOr<TensorEntry> SafetensorsFile::Get(std::string_view name) const {
  const TensorEntry* entry = Find(name);
  if (entry == nullptr) return NotFound("{} has no tensor '{}'", path_, name);
  return *entry;
}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(
    const std::string& path, std::span<const TensorDeclaration> tensors,
    const std::map<std::string, std::string, std::less<>>& metadata) {
  MEGA_ASSIGN_OR_RETURN(const std::string header, SafetensorsHeader(tensors, metadata));
  SafetensorsWriter writer;
  writer.path_ = path;
  writer.offset_ = writer.end_ = static_cast<int64_t>(header.size());
  for (const TensorDeclaration& tensor : tensors) {
    MEGA_ASSIGN_OR_RETURN(const int64_t bytes, TensorBytes(tensor.dtype, tensor.shape));
    if (__builtin_add_overflow(writer.end_, bytes, &writer.end_))
      return InvalidArgument("{}: the file would have more bytes than an int64 counts", path);
  }
  writer.fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (writer.fd_ < 0) return ErrnoStatus(errno, fmt::format("{}: create", path));
  MEGA_RETURN_IF_ERROR(WriteAll(writer.fd_, std::as_bytes(std::span(header)), 0, path));
  return writer;
}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      offset_(other.offset_),
      end_(other.end_) {}

SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(offset_, other.offset_);
  std::swap(end_, other.end_);
  return *this;
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_ >= 0) close(fd_);
}

absl::Status SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  if (fd_ < 0) return FailedPrecondition("{} is closed already", path_);
  if (static_cast<int64_t>(bytes.size()) > end_ - offset_)
    return InvalidArgument("{}: {} bytes more than its tensors have were appended", path_,
                           static_cast<int64_t>(bytes.size()) - (end_ - offset_));
  MEGA_RETURN_IF_ERROR(WriteAll(fd_, bytes, offset_, path_));
  offset_ += static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Finish(bool sync) {
  if (fd_ < 0) return FailedPrecondition("{} is closed already", path_);
  if (offset_ != end_)
    return FailedPrecondition("{}: {} bytes of its tensors are still missing", path_,
                              end_ - offset_);
  if (sync && fsync(fd_) != 0) return ErrnoStatus(errno, fmt::format("{}: fsync", path_));
  if (close(std::exchange(fd_, -1)) != 0)
    return ErrnoStatus(errno, fmt::format("{}: close", path_));
  return absl::OkStatus();
}

}  // namespace mega::checkpoint
