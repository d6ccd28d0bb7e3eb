// A state folder of which something is gone or is something else: refused, whatever it is, at each
// start, and with the way out; what a start that was cut short leaves is none.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "coordinator/state/rocksdb/rocksdb_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/state/stores.h"
#include "tests/support/temp_dir.h"

namespace mega::state {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class LostState : public ::testing::Test {
 protected:
  // At revision 3.
  LostState() {
    auto store = *RocksDbStore::Open(db_);
    for (int64_t revision = 1; revision <= 3; ++revision) {
      std::vector<v1::Mutation> mutations(2);
      mutations[0].mutable_put_node()->set_name("node" + std::to_string(revision));
      mutations[1].mutable_put_meta()->set_revision(revision);
      EXPECT_TRUE(store->Commit(mutations).ok());
    }
  }
  absl::StatusOr<core::State> Load(bool accept_loss = false) {
    auto store = RocksDbStore::Open(db_, nullptr, accept_loss);
    if (!store.ok()) return store.status();
    return (*store)->Load();
  }
  void Mark(const std::string& text) { std::ofstream(mark_, std::ios::trunc) << text; }
  fs::path Find(const std::string& part) {
    for (const auto& entry : fs::directory_iterator(db_)) {
      if (entry.path().filename().string().find(part) != std::string::npos) return entry.path();
    }
    return db_ + "/none";
  }
  // Twice, for the first start must not change what the second finds.
  void ExpectRefused(const std::string& what) {
    for (int start = 1; start <= 2; ++start) {
      const absl::Status status = Load().status();
      EXPECT_TRUE(absl::IsDataLoss(status)) << start << ": " << status;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(what), HasSubstr("--accept-lost-state"), HasSubstr(db_)));
    }
  }

  mega::testing::TempDir dir_;
  const std::string db_ = dir_.path() + "/state/db";
  const std::string mark_ = db_ + ".revision";
};

// Case: each of these was no mark, and a state that had lost everything was served.
TEST_F(LostState, AMarkThatIsNoneIsRefused) {
  for (const char* text : {"", "garbage", "-5", "99999999999999999999999", "0000000000000000003",
                           "-000000000000000003\n", "9999999999999999999\n"}) {
    Mark(text);
    ExpectRefused(mark_);
  }
  fs::remove(mark_);
  ExpectRefused("is gone");
  fs::create_directory(mark_);
  ExpectRefused("not a regular file");
  fs::remove(mark_);
  ASSERT_EQ(mkfifo(mark_.c_str(), 0600), 0);  // case: it was waited for
  ExpectRefused("not a regular file");
}

TEST_F(LostState, AMarkThatIsNoneIsMadeAnewOnceItIsAccepted) {
  fs::remove(mark_);
  ASSERT_EQ(mkfifo(mark_.c_str(), 0600), 0);
  {
    auto store = *RocksDbStore::Open(db_, nullptr, /*accept_loss=*/true);
    const core::State state = *store->Load();
    EXPECT_EQ(state.durable.nodes.size(), 3u);
    EXPECT_GT(state.durable.meta.revision(), 1'000'000) << "above what may have been given away";
    std::vector<v1::Mutation> mutations(1);
    *mutations[0].mutable_put_meta() = state.durable.meta;
    ASSERT_TRUE(store->Commit(mutations).ok());
  }
  EXPECT_TRUE(Load().ok());
}

// Case: without CURRENT the first start made an empty database, and the second one served it.
TEST_F(LostState, FilesOfTheDatabaseThatAreGoneAreRefused) {
  const auto saved = db_ + ".saved";
  const auto mark = mark_ + ".saved";
  fs::copy(db_, saved, fs::copy_options::recursive);
  fs::copy(mark_, mark);
  const auto restore = [&] {
    fs::remove_all(db_);
    fs::copy(saved, db_, fs::copy_options::recursive);
  };
  for (const char* part : {"CURRENT", "MANIFEST"}) {
    restore();
    fs::remove(Find(part));
    ExpectRefused("damaged");
    restore();
    std::ofstream(Find(part), std::ios::trunc) << "garbage";
    ExpectRefused("damaged");
    restore();
    const fs::path file = Find(part);
    fs::remove(file);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);  // case: RocksDB waits for it
    ExpectRefused("not a regular file");
  }
  fs::remove_all(db_);
  ExpectRefused("it holds no database, but changes up to revision 3 were acknowledged");
  std::ofstream(db_) << "a file";
  ExpectRefused("is no folder");
  fs::remove(db_);
  const auto accepted = Load(/*accept_loss=*/true);
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  EXPECT_TRUE(accepted->durable.nodes.empty());
  EXPECT_EQ(accepted->durable.meta.revision(), 3);
}

TEST_F(LostState, AFirstStartThatWasCutShortIsNoLoss) {
  fs::remove_all(dir_.path() + "/state");
  { auto store = *RocksDbStore::Open(db_); }
  EXPECT_TRUE(fs::exists(mark_)) << "before anything is promised";
  fs::remove(Find("CURRENT"));  // a database half made
  fs::remove(Find(".log"));
  EXPECT_TRUE(Load().ok());
  EXPECT_TRUE(Load().ok());
  fs::remove_all(db_);  // the mark alone
  EXPECT_TRUE(Load().ok());
  fs::remove(mark_);  // the database alone, of a release that made the mark later
  EXPECT_TRUE(Load().ok());
}

// Case: RocksDB's own log file could not be written, and to write on ended the process.
TEST(FullDisk, AtTheFirstStartIsAnErrorAndNoCrash) {
  const mega::testing::TempDir dir;
  for (int kib : {4, 8, 12, 16, 20, 24, 28, 32}) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string size = "size=" + std::to_string(kib) + "k";
      if (unshare(CLONE_NEWNS) != 0 ||
          mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          mount("none", dir.path().c_str(), "tmpfs", 0, size.c_str()) != 0) {
        _exit(77);
      }
      const auto store = RocksDbStore::Open(dir.path() + "/state/db");
      _exit(store.ok() ? 0 : absl::IsResourceExhausted(store.status()) ? 3 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << kib << " KiB: signal " << WTERMSIG(status);
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no right to mount a small disk";
    EXPECT_THAT(WEXITSTATUS(status), ::testing::AnyOf(0, 3)) << kib << " KiB";
  }
}

}  // namespace
}  // namespace mega::state
