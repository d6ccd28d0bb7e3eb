#include "worker/engine/datasets/text_cache.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "base/folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "worker/engine/datasets/file.h"
#include "worker/engine/datasets/indexed.h"

namespace mega::datasets {
namespace {

// A build that takes longer than this in another process is not waited for any more.
constexpr std::chrono::hours kLongestWait(6);
// What a start reads of a built dataset at most, to see that it is whole.
constexpr int64_t kPieces = 32;
constexpr int64_t kPieceBytes = 64 << 10;
constexpr size_t kMostSumBytes = 128;

// What must be the same for a built dataset to be used again.
absl::StatusOr<std::string> Fingerprint(const std::string& path,
                                        const tokenizers::Tokenizer& tokenizer) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, path + " cannot be read");
  std::error_code error;
  return fmt::format("1 {} {} {}.{:09} {}", tokenizer.name(), info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, std::filesystem::absolute(path, error).string());
}

absl::StatusOr<uint64_t> HashOfPieces(const File& file, int64_t size) {
  std::vector<char> piece(kPieceBytes);
  uint64_t hash = Fnv1a("");
  const int64_t last = std::max<int64_t>(size - kPieceBytes, 0);
  const int64_t pieces = std::min<int64_t>(kPieces, (size + kPieceBytes - 1) / kPieceBytes);
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t start = pieces == 1 ? 0 : last * i / (pieces - 1);
    const std::span<char> bytes(piece.data(), std::min<size_t>(piece.size(), size - start));
    MEGA_RETURN_IF_ERROR(file.ReadAt(start, bytes));
    hash = Fnv1a({bytes.data(), bytes.size()}, hash);
  }
  return hash;
}

// Of both files. It is not for people: two of them are equal or not.
absl::StatusOr<std::string> SumOf(const std::string& prefix) {
  std::string sum;
  for (const char* ending : {".bin", ".idx"}) {
    MEGA_ASSIGN_OR_RETURN(const File file, File::OpenToRead(prefix + ending));
    MEGA_ASSIGN_OR_RETURN(const int64_t size, file.Size());
    MEGA_ASSIGN_OR_RETURN(const uint64_t hash, HashOfPieces(file, size));
    sum += fmt::format("{} {:016x}\n", size, hash);
  }
  return sum;
}

// PREFIX.from, written last: with it the dataset was complete once.
std::string RecordOf(const std::string& fingerprint, const std::string& sum) {
  return fmt::format("{}\n{}", fingerprint, sum);
}

enum class State { kNotBuilt, kDamaged, kWhole };

State StateOf(const std::string& prefix, const std::string& fingerprint) {
  absl::StatusOr<File> file = File::OpenToRead(prefix + ".from");
  if (!file.ok()) return State::kNotBuilt;
  std::string text(fingerprint.size() + kMostSumBytes, '\0');
  const absl::StatusOr<size_t> n = file->Read(text);
  if (!n.ok()) return State::kDamaged;
  text.resize(*n);
  if (!text.starts_with(fingerprint)) return State::kNotBuilt;
  const absl::StatusOr<std::string> sum = SumOf(prefix);
  const bool is_whole =
      sum.ok() && text == RecordOf(fingerprint, *sum) && IndexedDataset::Open(prefix).ok();
  return is_whole ? State::kWhole : State::kDamaged;
}

absl::Status WriteRecord(const std::string& prefix, const std::string& fingerprint) {
  MEGA_ASSIGN_OR_RETURN(const std::string sum, SumOf(prefix));
  const std::string temporary = TemporaryName(prefix + ".from");
  MEGA_ASSIGN_OR_RETURN(File file, File::OpenToWrite(temporary));
  MEGA_RETURN_IF_ERROR(file.Write(RecordOf(fingerprint, sum)));
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
    if (StateOf(prefix, fingerprint) == State::kWhole) return std::optional<File>();
    if (std::chrono::steady_clock::now() > deadline)
      return Unavailable("{}.lock is held by another process that builds the dataset; end it",
                         prefix);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(100));
  }
  const State state = StateOf(prefix, fingerprint);
  if (state == State::kWhole) return std::optional<File>();
  if (state == State::kDamaged) {
    log::Warn("the text that was tokenised before is damaged; building it again",
              {{"dataset", prefix}});
  }
  RemoveLeftovers(prefix);
  return std::optional<File>(std::move(lock));
}

}  // namespace

absl::StatusOr<std::string> BuildCached(const std::string& path,
                                        const tokenizers::Tokenizer& tokenizer,
                                        const std::string& folder, const OnProgress& progress) {
  MEGA_ASSIGN_OR_RETURN(const std::string fingerprint, Fingerprint(path, tokenizer));
  const std::filesystem::path name = std::filesystem::path(path).stem();
  const std::string prefix =
      (std::filesystem::path(folder) / fmt::format("{}-{:016x}", name.string(), Fnv1a(fingerprint)))
          .string();
  if (StateOf(prefix, fingerprint) == State::kWhole) return prefix;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), folder + " cannot be made");
  MEGA_ASSIGN_OR_RETURN(const std::optional<File> lock, LockToBuild(prefix, fingerprint));
  if (!lock.has_value()) return prefix;
  MEGA_RETURN_IF_ERROR(Build({&path, 1}, tokenizer, prefix, progress));
  MEGA_ASSIGN_OR_RETURN(const std::string after, Fingerprint(path, tokenizer));
  if (after != fingerprint)
    return Unavailable("{} changed while it was read; start again when it is complete", path);
  MEGA_RETURN_IF_ERROR(WriteRecord(prefix, fingerprint));
  return prefix;
}

}  // namespace mega::datasets
