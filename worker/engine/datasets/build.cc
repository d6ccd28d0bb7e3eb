#include "worker/engine/datasets/build.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "base/folder.h"
#include "base/hash.h"
#include "worker/engine/datasets/file.h"
#include "worker/engine/datasets/indexed.h"
#include "worker/engine/datasets/jsonl.h"

namespace mega::datasets {
namespace {

constexpr size_t kBlockBytes = 1 << 20;
// A build that takes longer than this in another process is not waited for any more.
constexpr std::chrono::hours kLongestWait(6);

bool IsJsonl(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension();
  return extension == ".jsonl" || extension == ".ndjson";
}

class Builder {
 public:
  Builder(const tokenizers::Tokenizer& tokenizer, IndexedWriter& writer, const OnProgress& report)
      : tokenizer_(tokenizer), writer_(writer), report_(report) {}

  absl::Status AddTotal(const std::string& path) {
    MEGA_ASSIGN_OR_RETURN(const File file, File::OpenToRead(path));
    MEGA_ASSIGN_OR_RETURN(const int64_t size, file.Size());
    progress_.bytes_total += size;
    return absl::OkStatus();
  }

  absl::Status Add(const std::string& path) {
    MEGA_ASSIGN_OR_RETURN(File file, File::OpenToRead(path));
    const int64_t start = progress_.bytes_read;
    if (IsJsonl(path)) {
      MEGA_RETURN_IF_ERROR(ReadJsonl(file, [&](std::string_view text, int64_t bytes_read) {
        const absl::Status status = Encode(text);
        progress_.bytes_read = start + bytes_read;
        EndDocument();
        return status;
      }));
    } else {
      MEGA_RETURN_IF_ERROR(AddText(file));
      EndDocument();
    }
    if (report_) report_(progress_);
    return absl::OkStatus();
  }

 private:
  // A piece at a time where the tokenizer allows it, so that memory does not follow the file.
  absl::Status AddText(File& file) {
    MEGA_ASSIGN_OR_RETURN(const int64_t size, file.Size());
    std::vector<char> block(tokenizer_.concatenative() ? kBlockBytes
                                                       : static_cast<size_t>(size) + 1);
    while (true) {
      MEGA_ASSIGN_OR_RETURN(const size_t n, file.Read(block));
      MEGA_RETURN_IF_ERROR(Encode({block.data(), n}));
      progress_.bytes_read += static_cast<int64_t>(n);
      Report();
      if (n < block.size()) return absl::OkStatus();
    }
  }

  absl::Status Encode(std::string_view text) {
    ids_.clear();
    tokenizer_.Encode(text, ids_);
    return writer_.Append(ids_);
  }

  void EndDocument() {
    if (const std::optional<int32_t> id = tokenizer_.end_of_document())
      writer_.Append({&*id, 1}).IgnoreError();  // it fits: it is in the vocabulary
    writer_.EndDocument();
    ++progress_.documents;
    Report();
  }

  void Report() {
    progress_.tokens = writer_.num_tokens();
    if (!report_ || progress_.bytes_read < next_report_) return;
    next_report_ = progress_.bytes_read + (64 << 20);
    report_(progress_);
  }

  const tokenizers::Tokenizer& tokenizer_;
  IndexedWriter& writer_;
  const OnProgress& report_;
  std::vector<int32_t> ids_;
  BuildProgress progress_;
  int64_t next_report_ = 64 << 20;
};

// What must be the same for a built dataset to be used again.
absl::StatusOr<std::string> Fingerprint(const std::string& path,
                                        const tokenizers::Tokenizer& tokenizer) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, path + " cannot be read");
  std::error_code error;
  return fmt::format("1 {} {} {}.{:09} {}", tokenizer.name(), info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, std::filesystem::absolute(path, error).string());
}

// PREFIX.from holds the fingerprint, written last: with it the dataset is complete.
bool IsBuilt(const std::string& prefix, const std::string& fingerprint) {
  absl::StatusOr<File> file = File::OpenToRead(prefix + ".from");
  if (!file.ok()) return false;
  std::string text(fingerprint.size() + 1, '\0');
  const absl::StatusOr<size_t> n = file->Read(text);
  return n.ok() && *n == fingerprint.size() && text.compare(0, *n, fingerprint) == 0 &&
         ::access((prefix + ".idx").c_str(), R_OK) == 0 &&
         ::access((prefix + ".bin").c_str(), R_OK) == 0;
}

absl::Status WriteFingerprint(const std::string& prefix, const std::string& fingerprint) {
  const std::string temporary = TemporaryName(prefix + ".from");
  MEGA_ASSIGN_OR_RETURN(File file, File::OpenToWrite(temporary));
  MEGA_RETURN_IF_ERROR(file.Write(fingerprint));
  MEGA_RETURN_IF_ERROR(file.Sync());
  return Rename(temporary, prefix + ".from");
}

// What builds that died left beside `prefix`. Only with its lock, so no living build is meant.
void RemoveLeftovers(const std::string& prefix) {
  const std::filesystem::path path(prefix);
  const std::string begin = path.filename().string() + ".";
  const auto entries = ListFolder(path.parent_path());
  if (!entries.ok()) return;
  std::error_code ignored;
  for (const auto& entry : *entries) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(".tmp"))
      std::filesystem::remove(entry.path(), ignored);
  }
}

// Waits until this process may build `prefix`, or another one has built it (then nothing). The
// kernel drops the lock of a process that dies; what that one left is removed here.
absl::StatusOr<std::optional<File>> LockToBuild(const std::string& prefix,
                                                const std::string& fingerprint) {
  MEGA_ASSIGN_OR_RETURN(File lock, File::OpenToWrite(prefix + ".lock"));
  const auto deadline = std::chrono::steady_clock::now() + kLongestWait;
  auto pause = std::chrono::milliseconds(1);
  while (::flock(lock.fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return std::optional<File>(std::move(lock));  // no locks here: build twice, rename decides
    if (IsBuilt(prefix, fingerprint)) return std::optional<File>();
    if (std::chrono::steady_clock::now() > deadline)
      return Unavailable("{}.lock is held by another process that builds the dataset; end it",
                         prefix);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(100));
  }
  if (IsBuilt(prefix, fingerprint)) return std::optional<File>();
  RemoveLeftovers(prefix);
  return std::optional<File>(std::move(lock));
}

}  // namespace

absl::Status Build(std::span<const std::string> paths, const tokenizers::Tokenizer& tokenizer,
                   const std::string& prefix, const OnProgress& progress) {
  MEGA_ASSIGN_OR_RETURN(const std::unique_ptr<IndexedWriter> writer,
                        IndexedWriter::Create(prefix, TypeFor(tokenizer.vocab_size())));
  Builder builder(tokenizer, *writer, progress);
  for (const std::string& path : paths) MEGA_RETURN_IF_ERROR(builder.AddTotal(path));
  for (const std::string& path : paths) MEGA_RETURN_IF_ERROR(builder.Add(path));
  return writer->Finish();
}

absl::StatusOr<std::string> BuildCached(const std::string& path,
                                        const tokenizers::Tokenizer& tokenizer,
                                        const std::string& folder, const OnProgress& progress) {
  MEGA_ASSIGN_OR_RETURN(const std::string fingerprint, Fingerprint(path, tokenizer));
  const std::filesystem::path name = std::filesystem::path(path).stem();
  const std::string prefix =
      (std::filesystem::path(folder) / fmt::format("{}-{:016x}", name.string(), Fnv1a(fingerprint)))
          .string();
  if (IsBuilt(prefix, fingerprint)) return prefix;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), folder + " cannot be made");
  MEGA_ASSIGN_OR_RETURN(const std::optional<File> lock, LockToBuild(prefix, fingerprint));
  if (!lock.has_value()) return prefix;
  MEGA_RETURN_IF_ERROR(Build({&path, 1}, tokenizer, prefix, progress));
  MEGA_ASSIGN_OR_RETURN(const std::string after, Fingerprint(path, tokenizer));
  if (after != fingerprint)
    return Unavailable("{} changed while it was read; start again when it is complete", path);
  MEGA_RETURN_IF_ERROR(WriteFingerprint(prefix, fingerprint));
  return prefix;
}

}  // namespace mega::datasets
