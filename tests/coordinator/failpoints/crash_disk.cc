#include "tests/coordinator/failpoints/crash_disk.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/check.h"

namespace mega::state {
namespace {

namespace fs = std::filesystem;
using rocksdb::IOStatus;

std::string FolderOf(const std::string& path) { return fs::path(path).parent_path().string(); }

// The same for a/b and a//b/.
std::string Plain(const std::string& path) {
  std::string plain = fs::path(path).lexically_normal().string();
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  return plain;
}

}  // namespace

std::string_view Name(DiskFault fault) {
  switch (fault) {
    case DiskFault::kKill:
      return "Kill";
    case DiskFault::kPowerCut:
      return "PowerCut";
    case DiskFault::kTornCut:
      return "TornCut";
    case DiskFault::kIoError:
      return "IoError";
    case DiskFault::kNoSpace:
      return "NoSpace";
  }
  return "";
}

CrashDisk::CrashDisk(DiskFault fault, int64_t at)
    : FileSystemWrapper(rocksdb::FileSystem::Default()), fault_(fault), at_(at) {}

int64_t CrashDisk::operations() const {
  MutexLock lock(mu_);
  return operations_;
}

CrashDisk::Verdict CrashDisk::Next() {
  const IOStatus off = IOStatus::IOError("the machine is off");
  const IOStatus full = IOStatus::NoSpace("no space left on device");
  if (is_off_) return {fault_ == DiskFault::kNoSpace ? full : off, /*go_on=*/false};
  ++operations_;
  if (operations_ != at_) return {IOStatus::OK(), /*go_on=*/true};
  switch (fault_) {
    case DiskFault::kKill:
    case DiskFault::kPowerCut:
      is_off_ = true;
      return {off, /*go_on=*/false};
    case DiskFault::kTornCut:
      is_off_ = true;
      return {off, /*go_on=*/true};
    case DiskFault::kIoError:
      return {IOStatus::IOError("input/output error"), /*go_on=*/false};
    case DiskFault::kNoSpace:
      is_off_ = true;
      return {full, /*go_on=*/true};
  }
  return {IOStatus::OK(), /*go_on=*/true};
}

std::string CrashDisk::ToGrave(const std::string& path) {
  std::string grave = graves_ / std::to_string(next_grave_++);
  fs::rename(path, grave);
  return grave;
}

void CrashDisk::Restart() {
  MutexLock lock(mu_);
  if (fault_ != DiskFault::kKill) {
    for (const auto& [path, content] : contents_) {
      const bool is_half = fault_ == DiskFault::kTornCut && !content->is_lost;
      const int64_t stays = content->synced + (is_half ? (content->size - content->synced) / 2 : 0);
      std::error_code gone;
      if (static_cast<int64_t>(fs::file_size(path, gone)) > stays && !gone) {
        fs::resize_file(path, stays);
      }
    }
    // Half of the names would be one more fault: that all of them stay is the kill's.
    if (fault_ != DiskFault::kTornCut) {
      for (; !undos_.empty(); undos_.pop_back()) undos_.back().undo();
    }
  }
  contents_.clear();
  undos_.clear();
}

// Bytes of one file. What was appended is in the real file; what is on the disk is in `content`.
class CrashDisk::File : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  File(std::unique_ptr<rocksdb::FSWritableFile> file, CrashDisk& disk,
       std::shared_ptr<Content> content)
      : FSWritableFileOwnerWrapper(std::move(file)), disk_(disk), content_(std::move(content)) {}

  Status Append(const rocksdb::Slice& data, const Options& options, Context* context) override {
    MutexLock lock(disk_.mu_);
    const Verdict verdict = disk_.Next();
    if (!verdict.go_on) return verdict.status;
    const bool is_half = disk_.fault_ == DiskFault::kNoSpace && !verdict.status.ok();
    const size_t bytes = is_half ? data.size() / 2 : data.size();
    const Status done =
        FSWritableFileOwnerWrapper::Append(rocksdb::Slice(data.data(), bytes), options, context);
    content_->size += static_cast<int64_t>(bytes);
    return done.ok() ? verdict.status : done;
  }
  Status Append(const rocksdb::Slice& data, const Options& options,
                const rocksdb::DataVerificationInfo&, Context* context) override {
    return Append(data, options, context);
  }
  Status Truncate(uint64_t size, const Options& options, Context* context) override {
    MutexLock lock(disk_.mu_);
    const Verdict verdict = disk_.Next();
    if (!verdict.go_on) return verdict.status;
    const Status done = FSWritableFileOwnerWrapper::Truncate(size, options, context);
    content_->size = static_cast<int64_t>(size);
    content_->synced = std::min(content_->synced, content_->size);
    return done.ok() ? verdict.status : done;
  }
  Status Sync(const Options&, Context*) override {
    MutexLock lock(disk_.mu_);
    const Verdict verdict = disk_.Next();
    if (!verdict.status.ok()) {
      content_->is_lost = true;
      return verdict.status;
    }
    if (!content_->is_lost) content_->synced = content_->size;
    return Status::OK();
  }
  Status Fsync(const Options& options, Context* context) override { return Sync(options, context); }
  Status RangeSync(uint64_t, uint64_t, const Options&, Context*) override {
    return Status::OK();  // promises nothing
  }

 private:
  CrashDisk& disk_;
  const std::shared_ptr<Content> content_;
};

class CrashDisk::Directory : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(std::unique_ptr<rocksdb::FSDirectory> directory, CrashDisk& disk, std::string path)
      : FSDirectoryWrapper(std::move(directory)), disk_(disk), path_(std::move(path)) {}

  Status Fsync(const Options&, Context*) override {
    MutexLock lock(disk_.mu_);
    const Verdict verdict = disk_.Next();
    if (!verdict.status.ok()) return verdict.status;
    disk_.undos_.remove_if([this](const Undo& undo) { return undo.folder == path_; });
    return Status::OK();
  }
  Status FsyncWithDirOptions(const Options& options, Context* context,
                             const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, context);
  }

 private:
  CrashDisk& disk_;
  const std::string path_;
};

IOStatus CrashDisk::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    Context* context) {
  MutexLock lock(mu_);
  const Verdict verdict = Next();
  if (!verdict.status.ok()) return verdict.status;
  const std::string plain = Plain(path);
  if (fs::exists(plain)) {
    const std::string grave = ToGrave(plain);
    undos_.push_back({FolderOf(plain), [plain, grave] { fs::rename(grave, plain); }});
  } else {
    undos_.push_back({FolderOf(plain), [plain] { fs::remove(plain); }});
  }
  if (IOStatus made = target()->NewWritableFile(path, options, result, context); !made.ok()) {
    return made;
  }
  auto content = std::make_shared<Content>();
  contents_[plain] = content;
  *result = std::make_unique<File>(std::move(*result), *this, std::move(content));
  return IOStatus::OK();
}

// Of recycled logs, which the store does not use.
IOStatus CrashDisk::ReuseWritableFile(const std::string&, const std::string&,
                                      const rocksdb::FileOptions&,
                                      std::unique_ptr<rocksdb::FSWritableFile>*, Context*) {
  return IOStatus::NotSupported("CrashDisk::ReuseWritableFile");
}

IOStatus CrashDisk::NewDirectory(const std::string& path, const Options& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result, Context* context) {
  IOStatus status = target()->NewDirectory(path, options, result, context);
  if (status.ok()) {
    *result = std::make_unique<Directory>(std::move(*result), *this, Plain(path));
  }
  return status;
}

IOStatus CrashDisk::DeleteFile(const std::string& path, const Options& options, Context* context) {
  MutexLock lock(mu_);
  const Verdict verdict = Next();
  if (!verdict.status.ok()) return verdict.status;
  const std::string plain = Plain(path);
  if (!fs::exists(plain)) return target()->DeleteFile(path, options, context);
  // Its bytes are what they are: only the name may come back.
  const auto content = contents_.extract(plain);
  const int64_t synced = content.empty() ? -1 : content.mapped()->synced;
  const std::string grave = ToGrave(plain);
  undos_.push_back({FolderOf(plain), [plain, grave, synced] {
                      if (synced >= 0) fs::resize_file(grave, synced);
                      fs::rename(grave, plain);
                    }});
  return IOStatus::OK();
}

IOStatus CrashDisk::RenameFile(const std::string& from, const std::string& to,
                               const Options& options, Context* context) {
  MutexLock lock(mu_);
  const Verdict verdict = Next();
  if (!verdict.status.ok()) return verdict.status;
  const std::string old_path = Plain(from), new_path = Plain(to);
  const std::string grave = fs::exists(new_path) ? ToGrave(new_path) : "";
  IOStatus status = target()->RenameFile(from, to, options, context);
  if (!status.ok()) return status;
  undos_.push_back({FolderOf(new_path), [old_path, new_path, grave] {
                      fs::rename(new_path, old_path);
                      if (!grave.empty()) fs::rename(grave, new_path);
                    }});
  contents_.erase(new_path);
  if (auto content = contents_.extract(old_path)) {
    content.key() = new_path;
    contents_.insert(std::move(content));
  }
  return status;
}

IOStatus CrashDisk::Truncate(const std::string& path, size_t size, const Options& options,
                             Context* context) {
  MutexLock lock(mu_);
  const Verdict verdict = Next();
  if (!verdict.status.ok()) return verdict.status;
  if (const auto it = contents_.find(Plain(path)); it != contents_.end()) {
    it->second->size = static_cast<int64_t>(size);
    it->second->synced = std::min(it->second->synced, it->second->size);
  }
  return target()->Truncate(path, size, options, context);
}

}  // namespace mega::state
