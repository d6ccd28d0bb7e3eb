// A disk that fails at an operation of a test's choice, under RocksDB. Over real files, of which it
// knows what was synced: bytes, and names of files, that were not are gone after a power cut. Names
// are as strict as POSIX is: created, renamed, removed is only what a sync of the folder confirmed.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "rocksdb/file_system.h"
#include "tests/support/temp_dir.h"

namespace mega::state {

enum class DiskFault {
  kKill,      // the process ends before the operation; what it wrote stays
  kPowerCut,  // likewise, and what was not synced is gone
  kTornCut,  // the operation is made, then half of the bytes of each file that were not synced stay
  kIoError,  // the operation fails, later ones succeed; then a power cut at the end
  kNoSpace,  // half of the bytes are written, and nothing is accepted any more; then likewise
};
std::string_view Name(DiskFault fault);

class CrashDisk : public rocksdb::FileSystemWrapper {
 public:
  // `at`: the operation that fails, counted from 1; 0: none does.
  CrashDisk(DiskFault fault, int64_t at);
  const char* Name() const override { return "CrashDisk"; }

  int64_t operations() const;  // those that change something, and syncs
  bool has_failed() const { return operations() >= at_ && at_ != 0; }
  // When nobody has a file open any more: the real files become what the fault leaves of them.
  void Restart();

  using Status = rocksdb::IOStatus;
  using Options = rocksdb::IOOptions;
  using Context = rocksdb::IODebugContext;
  Status NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                         std::unique_ptr<rocksdb::FSWritableFile>* result,
                         Context* context) override;
  Status ReuseWritableFile(const std::string& path, const std::string& old_path,
                           const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           Context* context) override;
  Status NewDirectory(const std::string& path, const Options& options,
                      std::unique_ptr<rocksdb::FSDirectory>* result, Context* context) override;
  Status DeleteFile(const std::string& path, const Options& options, Context* context) override;
  Status RenameFile(const std::string& from, const std::string& to, const Options& options,
                    Context* context) override;
  Status Truncate(const std::string& path, size_t size, const Options& options,
                  Context* context) override;

 private:
  class File;
  class Directory;
  struct Content {
    int64_t size = 0;
    int64_t synced = 0;
    bool is_lost = false;  // a sync failed: no later one brings back what it did not write
  };
  struct Undo {
    std::string folder;
    std::function<void()> undo;
  };

  // What to do with an operation, of which there is one more now. `go_on`: carry it out first, or
  // half of it where it has bytes.
  struct Verdict {
    Status status;
    bool go_on = true;
  };
  Verdict Next() MEGA_REQUIRES(mu_);
  std::string ToGrave(const std::string& path) MEGA_REQUIRES(mu_);

  const DiskFault fault_;
  const int64_t at_;
  const testing::TempDir graves_;  // removed files whose folder was not synced since
  mutable Mutex mu_;
  int64_t operations_ MEGA_GUARDED_BY(mu_) = 0;
  int64_t next_grave_ MEGA_GUARDED_BY(mu_) = 0;
  bool is_off_ MEGA_GUARDED_BY(mu_) = false;
  std::map<std::string, std::shared_ptr<Content>> contents_ MEGA_GUARDED_BY(mu_);
  std::list<Undo> undos_ MEGA_GUARDED_BY(mu_);  // of names, newest last
};

}  // namespace mega::state
