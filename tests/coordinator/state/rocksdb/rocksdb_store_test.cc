// What is peculiar to a disk: locks, formats, damage, and syncs that fail.
#include "coordinator/state/rocksdb/rocksdb_store.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "tests/coordinator/state/stores.h"

namespace mega::state {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<v1::Mutation> PutNode(const std::string& name) {
  std::vector<v1::Mutation> mutations(1);
  mutations[0].mutable_put_node()->set_name(name);
  return mutations;
}

std::string OpenError(const std::string& folder) {
  return std::string(RocksDbStore::Open(folder).status().message());
}

// Fails the WAL's writes or syncs from the moment it is told to.
class FaultyFileSystem : public rocksdb::FileSystemWrapper {
 public:
  FaultyFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FaultyFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = target()->NewWritableFile(name, options, result, context);
    if (status.ok()) *result = std::make_unique<File>(std::move(*result), *this);
    return status;
  }
  bool is_failing = false;  // syncs
  bool is_full = false;     // half a record is written, then there is no space
  int syncs = 0;

 private:
  class File : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSWritableFile> file, FaultyFileSystem& faults)
        : FSWritableFileOwnerWrapper(std::move(file)), faults_(faults) {}
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* context) override {
      if (!faults_.is_full) return FSWritableFileOwnerWrapper::Append(data, options, context);
      (void)FSWritableFileOwnerWrapper::Append(rocksdb::Slice(data.data(), data.size() / 2),
                                               options, context);
      return rocksdb::IOStatus::NoSpace("no space left on device");
    }
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             const rocksdb::DataVerificationInfo& verification,
                             rocksdb::IODebugContext* context) override {
      if (faults_.is_full) return Append(data, options, context);
      return FSWritableFileOwnerWrapper::Append(data, options, verification, context);
    }
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* context) override {
      ++faults_.syncs;
      if (faults_.is_failing) return rocksdb::IOStatus::IOError("no space left on device");
      return FSWritableFileOwnerWrapper::Sync(options, context);
    }

   private:
    FaultyFileSystem& faults_;
  };
};

TEST(RocksDbStore, ASecondCoordinatorIsToldThatTheFolderIsInUse) {
  StoreFactory stores(StoreKind::kRocksDb);
  auto first = stores.Open();
  EXPECT_THAT(OpenError(stores.folder() + "/db"), HasSubstr("in use by another coordinator"));
}

// Case: any failure below a folder like /mnt/block was told as another coordinator's lock.
TEST(RocksDbStore, OnlyALockIsToldAsOne) {
  StoreFactory stores(StoreKind::kRocksDb);
  const std::string in_path = stores.folder() + "/block/db";
  std::filesystem::create_directories(in_path + "/CURRENT");  // cannot be read as a file
  EXPECT_THAT(OpenError(in_path), AllOf(Not(HasSubstr("in use")), HasSubstr(in_path)));
  const std::string no_lock = stores.folder() + "/db";
  std::filesystem::create_directories(no_lock + "/LOCK");
  EXPECT_THAT(OpenError(no_lock), AllOf(Not(HasSubstr("in use")), HasSubstr(no_lock)));
}

TEST(RocksDbStore, AnUnknownFormatIsRefused) {
  StoreFactory stores(StoreKind::kRocksDb);
  const std::string folder = stores.folder() + "/db";
  stores.Open().reset();
  rocksdb::DB* db = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  ASSERT_TRUE(rocksdb::DB::Open({}, folder, {{"default", {}}, {"steps", {}}}, &handles, &db).ok());
  ASSERT_TRUE(db->Put({}, "format", "2").ok());
  for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
  delete db;
  EXPECT_THAT(OpenError(folder), HasSubstr("has format '2', and this release reads '1'"));
}

TEST(RocksDbStore, ADamagedRecordIsNamed) {
  StoreFactory stores(StoreKind::kRocksDb);
  const std::string folder = stores.folder() + "/db";
  stores.Open().reset();
  rocksdb::DB* db = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  ASSERT_TRUE(rocksdb::DB::Open({}, folder, {{"default", {}}, {"steps", {}}}, &handles, &db).ok());
  ASSERT_TRUE(db->Put({}, "jxxxx", "\xff\xff\xff").ok());
  for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
  delete db;
  const absl::Status status = stores.Open()->Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("6A78787878"));
}

TEST(RocksDbStore, DamageInTheLogIsAnErrorAndNotAnOlderState) {
  StoreFactory stores(StoreKind::kRocksDb);
  const std::string folder = stores.folder() + "/db";
  {
    auto store = stores.Open();
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(store->Commit(PutNode("node" + std::to_string(i))).ok());
    }
  }
  std::string log;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".log" && entry.file_size() > 1000) log = entry.path();
  }
  ASSERT_FALSE(log.empty());
  {
    std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(500);
    file.put('\x55');
    file.put('\xaa');
  }
  EXPECT_EQ(RocksDbStore::Open(folder).status().code(), absl::StatusCode::kDataLoss);
}

TEST(RocksDbStore, ATornTailIsWhatACrashLeaves) {
  StoreFactory stores(StoreKind::kRocksDb);
  const std::string folder = stores.folder() + "/db";
  {
    auto store = stores.Open();
    ASSERT_TRUE(store->Commit(PutNode("first")).ok());
    ASSERT_TRUE(store->Commit(PutNode("second")).ok());
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".log" && entry.file_size() > 0) {
      std::filesystem::resize_file(entry.path(), entry.file_size() - 3);
    }
  }
  const core::State state = *stores.Open()->Load();
  EXPECT_TRUE(state.durable.nodes.contains("first"));
  EXPECT_FALSE(state.durable.nodes.contains("second"));
}

// Case: a log that was cut in the middle opened without a word, at an older state.
TEST(RocksDbStore, AStateOlderThanWhatWasAcknowledgedIsRefusedUnlessItIsAccepted) {
  StoreFactory stores(StoreKind::kRocksDb);
  const std::string folder = stores.folder() + "/db";
  const auto at_revision = [](int64_t revision) {
    std::vector<v1::Mutation> mutations = PutNode("node" + std::to_string(revision));
    v1::Meta& meta = *mutations.emplace_back().mutable_put_meta();
    meta.set_revision(revision);
    meta.set_next_epoch(revision + 1);
    return mutations;
  };
  {
    auto store = stores.Open();
    for (int64_t i = 1; i <= 100; ++i) ASSERT_TRUE(store->Commit(at_revision(i)).ok());
  }
  EXPECT_EQ(stores.Open()->Load()->durable.meta.revision(), 100);
  {
    auto store = stores.Open();
    for (int64_t i = 101; i <= 200; ++i) ASSERT_TRUE(store->Commit(at_revision(i)).ok());
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".log" && entry.file_size() > 1000) {
      std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
    }
  }
  const absl::Status refused = stores.Open()->Load().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.message()),
              ::testing::AllOf(HasSubstr("is at revision 1"), HasSubstr("up to revision 200"),
                               HasSubstr(folder), HasSubstr("--accept-lost-state")));
  {
    auto store = *RocksDbStore::Open(folder, nullptr, /*accept_loss=*/true);
    const core::State state = *store->Load();
    EXPECT_TRUE(state.durable.nodes.contains("node100"));
    EXPECT_FALSE(state.durable.nodes.contains("node200"));
    EXPECT_EQ(state.durable.meta.revision(), 200);
    EXPECT_GT(state.durable.meta.next_epoch(), 200) << "epochs up to it may have been given away";
    ASSERT_TRUE(store->Commit(at_revision(201)).ok());
  }
  EXPECT_TRUE(stores.Open()->Load().ok()) << "accepted once, it is the state";
}

TEST(RocksDbStore, EveryCommitIsSyncedAndAFailedSyncIsFinal) {
  StoreFactory stores(StoreKind::kRocksDb);
  auto faults = std::make_shared<FaultyFileSystem>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(faults);
  auto store = *RocksDbStore::Open(stores.folder() + "/db", env.get());
  const int before = faults->syncs;
  ASSERT_TRUE(store->Commit(PutNode("a")).ok());
  EXPECT_EQ(faults->syncs, before + 1);

  faults->is_failing = true;
  EXPECT_FALSE(store->Commit(PutNode("b")).ok());
  faults->is_failing = false;
  const absl::Status after = store->Commit(PutNode("c"));
  EXPECT_EQ(after.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(after.message()), HasSubstr("restart"));
}

// Case: steps could not be written any more, and the next commit ended the process on an assertion
// of RocksDB's.
TEST(RocksDbStore, AFailedAppendOfStepsIsTheLastWrite) {
  StoreFactory stores(StoreKind::kRocksDb);
  const std::string folder = stores.folder() + "/db";
  {
    auto faults = std::make_shared<FaultyFileSystem>();
    const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(faults);
    auto store = *RocksDbStore::Open(folder, env.get());
    ASSERT_TRUE(store->Commit(PutNode("a")).ok());
    std::vector<v1::StepReport> steps(1);
    steps[0].set_job_uid("uid");
    steps[0].set_step(1);
    ASSERT_TRUE(store->AppendSteps(steps).ok());
    faults->is_full = true;
    const absl::Status full = store->AppendSteps(steps);
    EXPECT_THAT(std::string(full.message()),
                ::testing::AllOf(HasSubstr(folder), HasSubstr("no space left")));
    for (int i = 0; i < 3; ++i) {
      const absl::Status after = i == 1 ? store->AppendSteps(steps) : store->Commit(PutNode("b"));
      EXPECT_EQ(after.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(after.message()), HasSubstr("no space left")) << "the first reason";
    }
  }
  const core::State state = *stores.Open()->Load();
  EXPECT_TRUE(state.durable.nodes.contains("a"));
  EXPECT_FALSE(state.durable.nodes.contains("b"));
}

TEST(RocksDbStore, AFolderThatCannotBeMadeSaysWhy) {
  StoreFactory stores(StoreKind::kRocksDb);
  std::ofstream(stores.folder() + "/file") << "x";
  EXPECT_THAT(OpenError(stores.folder() + "/file/db"), HasSubstr("/file/db"));
}

}  // namespace
}  // namespace mega::state
