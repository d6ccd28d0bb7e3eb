#include "worker/engine/checkpoint/verifier.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/folder.h"
#include "base/read_file.h"
#include "worker/engine/checkpoint/hash.h"
#include "worker/engine/checkpoint/manifest.h"
#include "worker/engine/checkpoint/safetensors_header.h"

namespace mega::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSentences = 1000;
constexpr int64_t kChunkBytes = 4 << 20;
constexpr int64_t kLengthBytes = 8;  // of a safetensors header, in front of it

class Findings {
 public:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    if (++count_ <= kMostSentences) {
      sentences_.push_back(fmt::format(format, std::forward<Args>(args)...));
    }
  }
  size_t count() const { return count_; }
  std::vector<std::string> Take() && {
    if (count_ > kMostSentences) {
      sentences_.push_back(fmt::format("and {} more", count_ - kMostSentences));
    }
    return std::move(sentences_);
  }

 private:
  std::vector<std::string> sentences_;
  size_t count_ = 0;
};

// A file from its first byte to its last, every byte hashed on the way.
class ByteStream {
 public:
  ByteStream(const UniqueFd& fd, int64_t file_bytes, std::function<void(int64_t bytes)> told)
      : fd_(fd),
        told_(std::move(told)),
        chunk_(static_cast<size_t>(std::clamp<int64_t>(file_bytes, 1, kChunkBytes))) {}

  // The next `bytes`, in pieces.
  absl::Status Read(int64_t bytes, const std::function<void(const char*, size_t)>& take) {
    while (bytes > 0) {
      const ssize_t got = pread(fd_.get(), chunk_.data(),
                                std::min(static_cast<size_t>(bytes), chunk_.size()), offset_);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, fmt::format("cannot be read at byte {}", offset_));
      if (got == 0) return DataLoss("ends at byte {}: it was cut just now", offset_);
      hash_.Add(chunk_.data(), static_cast<size_t>(got));
      take(chunk_.data(), static_cast<size_t>(got));
      offset_ += got;
      bytes -= got;
      told_(got);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Read(int64_t bytes) {
    std::string text;
    MEGA_RETURN_IF_ERROR(
        Read(bytes, [&](const char* data, size_t size) { text.append(data, size); }));
    return text;
  }
  uint64_t hash() const { return hash_.value(); }
  int64_t offset() const { return offset_; }

 private:
  const UniqueFd& fd_;
  const std::function<void(int64_t)> told_;
  std::vector<char> chunk_;
  Hash hash_;
  int64_t offset_ = 0;
};

absl::StatusOr<SafetensorsContents> NextHeader(ByteStream& stream, int64_t file_bytes) {
  if (file_bytes < kLengthBytes) {
    return DataLoss("has {} bytes; the header's length alone takes {}", file_bytes, kLengthBytes);
  }
  MEGA_ASSIGN_OR_RETURN(const std::string words, stream.Read(kLengthBytes));
  uint64_t length = 0;
  for (int i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t{static_cast<unsigned char>(words[i])} << (8 * i);
  }
  const auto most =
      static_cast<uint64_t>(std::min(kMaxSafetensorsHeaderBytes, file_bytes - kLengthBytes));
  if (length > most) {
    return DataLoss("says that its header has {} bytes, at most {} can be", length, most);
  }
  MEGA_ASSIGN_OR_RETURN(const std::string header, stream.Read(static_cast<int64_t>(length)));
  return ReadHeader(header, file_bytes - stream.offset());
}

class Verification {
 public:
  Verification(const v1::Manifest& manifest, std::string folder,
               const std::function<void(const VerifyProgress&)>& told)
      : folder_(std::move(folder)), told_(told) {
    for (const v1::TensorInfo& tensor : manifest.tensors()) dtypes_[tensor.name()] = &tensor;
    for (const v1::TensorSlice& slice : manifest.slices()) {
      slices_[slice.file()][slice.name_in_file()].push_back(&slice);
    }
    for (const v1::CheckpointFile& file : manifest.files()) {
      if (__builtin_add_overflow(progress_.bytes_total, file.bytes(), &progress_.bytes_total)) {
        progress_.bytes_total = INT64_MAX;
      }
    }
  }

  void Check(const v1::CheckpointFile& file) {
    const absl::Status status = CheckBytes(file);
    if (!status.ok()) findings_.Add("{}: {}", file.name(), std::string(status.message()));
    files_ += status.ok() ? 1 : 0;
  }
  int64_t files() const { return files_; }
  int64_t bytes() const { return progress_.bytes_read; }
  std::vector<std::string> TakeDamage() && { return std::move(findings_).Take(); }

 private:
  using Slices = std::map<std::string, std::vector<const v1::TensorSlice*>>;

  // What keeps it from being read to its end; the rest is added to the findings.
  absl::Status CheckBytes(const v1::CheckpointFile& file) {
    int64_t bytes = 0;
    const absl::StatusOr<UniqueFd> fd = OpenRegularFile(folder_ + "/" + file.name(), &bytes);
    if (absl::IsNotFound(fd.status())) return DataLoss("is missing");
    if (!fd.ok()) return fd.status();
    if (bytes != file.bytes()) {
      return DataLoss("has {} bytes but the manifest says {}; it was cut or replaced", bytes,
                      file.bytes());
    }
    ByteStream stream(*fd, bytes, [this](int64_t read) {
      progress_.bytes_read += read;
      if (told_) told_(progress_);
    });
    MEGA_ASSIGN_OR_RETURN(const SafetensorsContents contents, NextHeader(stream, bytes));
    Slices wanted = slices_[file.name()];
    const size_t before = findings_.count();
    for (const std::string& name : contents.names) {
      const SafetensorsContents::Entry& entry = contents.entries.find(name)->second;
      Hash hash;
      MEGA_RETURN_IF_ERROR(stream.Read(
          entry.end - entry.begin, [&](const char* data, size_t size) { hash.Add(data, size); }));
      const auto slices = wanted.find(name);
      if (slices == wanted.end()) continue;  // the file's own checksum speaks for it
      for (const v1::TensorSlice* slice : slices->second) {
        Compare(*slice, entry, hash.value());
      }
      wanted.erase(slices);
    }
    for (const auto& [name, slices] : wanted)
      findings_.Add("{}: has no tensor {}", file.name(), name);
    if (findings_.count() == before && stream.hash() != file.xxh64()) {
      return DataLoss("its checksum is wrong, though those of its slices are right");
    }
    return absl::OkStatus();
  }

  void Compare(const v1::TensorSlice& slice, const SafetensorsContents::Entry& entry,
               uint64_t hash) {
    const std::string& dtype = dtypes_.at(slice.tensor())->dtype();
    if (kernels::NameOf(entry.dtype) != dtype) {
      findings_.Add("{}: {} is {} but the manifest says {}", slice.file(), slice.name_in_file(),
                    kernels::NameOf(entry.dtype), dtype);
    } else if (!std::ranges::equal(entry.shape.dims(), slice.shape())) {
      findings_.Add("{}: {} has shape {} but the manifest says [{}]", slice.file(),
                    slice.name_in_file(), entry.shape.ToString(),
                    absl::StrJoin(slice.shape(), ", "));
    } else if (hash != slice.xxh64()) {
      findings_.Add("{}: the checksum of {} is wrong", slice.file(), slice.name_in_file());
    }
  }

  const std::string folder_;
  const std::function<void(const VerifyProgress&)>& told_;
  std::map<std::string, const v1::TensorInfo*> dtypes_;
  std::map<std::string, Slices> slices_;  // by file, by name in it
  VerifyProgress progress_;
  Findings findings_;
  int64_t files_ = 0;
};

}  // namespace

absl::StatusOr<Verdict> Verify(const std::string& folder,
                               const std::function<void(const VerifyProgress&)>& told) {
  MEGA_ASSIGN_OR_RETURN(const std::vector<fs::directory_entry> entries, ListFolder(folder));
  Verdict verdict;
  std::set<std::string> names;
  for (const fs::directory_entry& entry : entries) names.insert(entry.path().filename().string());
  verdict.has_manifest_file = names.erase(kManifestName) > 0;

  absl::StatusOr<v1::Manifest> manifest = ReadManifest(folder);
  if (!verdict.has_manifest_file) {
    verdict.damage.push_back(fmt::format(
        "it has no {}: a save that was never completed, or no checkpoint at all", kManifestName));
  } else if (!manifest.ok()) {
    verdict.damage.push_back(
        fmt::format("{}: {}", kManifestName, std::string(manifest.status().message())));
  } else {
    Verification verification(*manifest, folder, told);
    for (const v1::CheckpointFile& file : manifest->files()) {
      names.erase(file.name());
      verification.Check(file);
    }
    verdict.files = verification.files();
    verdict.bytes = verification.bytes();
    verdict.damage = std::move(verification).TakeDamage();
    verdict.manifest = *std::move(manifest);
  }
  for (const std::string& name : names) {
    if (verdict.others.size() < kMostSentences) verdict.others.push_back(name);
  }
  return verdict;
}

}  // namespace mega::checkpoint
