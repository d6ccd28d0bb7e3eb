#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <future>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "manifest/validate.h"
#include "tests/worker/engine/checkpoint/saved.h"
#include "worker/engine/checkpoint/safetensors.h"

namespace mega::checkpoint {
namespace {

namespace fs = std::filesystem;
using mega::testing::ReadFile;
using mega::testing::WriteFile;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A large one that is cut, odd sizes, one row, one element, no dimension, no element.
const std::vector<std::vector<int64_t>> kShapes = {{301, 1021}, {7}, {3, 5, 2}, {1, 9},
                                                   {1},         {},  {0, 4},    {6, 3}};

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error))
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  return files;
}
State Blank(Pool& pool) {
  State blank(pool, kShapes, 0);
  for (const Tensor& tensor : blank.tensors)
    for (float& value : tensor.view().flat<float>()) value = std::nanf("");
  return blank;
}

TEST(Checkpoint, AnyNumberOfRanksSavesAndAnyNumberLoads) {
  Pool pool{Device{}};
  const State state(pool, kShapes, 0.5f);
  for (const int64_t savers : {1, 3, 4, 8}) {
    TempDir folder;
    const auto manifest = SaveAs(savers, state, 5, folder.path(), pool);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    ASSERT_EQ(manifest::Validate(*manifest), absl::OkStatus());
    for (const int64_t loaders : {1, 2, 5}) {
      const State loaded = Blank(pool);
      for (int64_t rank = 0; rank < loaders; ++rank)
        ASSERT_EQ(Load(*manifest, StepFolder(folder.path(), 5), Rows(loaded, rank, loaders)),
                  absl::OkStatus());
      EXPECT_TRUE(loaded == state) << savers << " → " << loaders;
    }
  }
}

TEST(Checkpoint, TheSameStateGivesTheSameBytes) {
  Pool pool{Device{}};
  TempDir a, b;
  const State state(pool, kShapes, 3);
  ASSERT_TRUE(SaveAs(2, state, 1, a.path(), pool).ok());
  ASSERT_TRUE(SaveAs(2, state, 1, b.path(), pool).ok());
  for (const std::string& file : FilesIn(a.path()))
    EXPECT_EQ(ReadFile(file), ReadFile(b.path() + file.substr(a.path().size())));
}

// Case: an asynchronous save wrote one layer of step 5 and another of step 6.
TEST(Checkpoint, WhatIsSavedIsTheStateAtSaveHoweverTrainingGoesOn) {
  Pool pool{Device{}};
  TempDir folder;
  Stream stream;
  v1::RankRef self;
  std::vector<v1::CheckpointPart> parts;
  Writer writer(
      folder.path(), self, pool, stream,
      [&](int64_t, absl::StatusOr<v1::CheckpointPart> part) { parts.push_back(*std::move(part)); });
  for (const int64_t step : {2, 4, 6}) {
    const State state(pool, kShapes, static_cast<float>(step));
    ASSERT_TRUE(writer.WaitIdle(absl::Seconds(60)));
    ASSERT_EQ(writer.Save(step, state.slices, std::nullopt), absl::OkStatus());
    for (const Tensor& tensor : state.tensors)
      for (float& value : tensor.view().flat<float>()) value = -1;
  }
  ASSERT_TRUE(writer.WaitIdle(absl::Seconds(60)));
  for (size_t i = 0; i < 3; ++i) {
    const int64_t step = 2 * static_cast<int64_t>(i) + 2;
    EXPECT_EQ(parts[i].step(), step);
    const State loaded = Blank(pool);
    ASSERT_EQ(Load(Join({parts[i]}, step), StepFolder(folder.path(), step), loaded.slices),
              absl::OkStatus());
    EXPECT_TRUE(loaded == State(pool, kShapes, static_cast<float>(step)));
  }
}

TEST(Checkpoint, SavesReuseTheirSnapshot) {
  Pool pool{Device{}};
  TempDir folder;
  Stream stream;
  const State state(pool, kShapes, 1);
  Writer writer(folder.path(), {}, pool, stream,
                [](int64_t, absl::StatusOr<v1::CheckpointPart>) {});
  for (int64_t step = 0; step < 10; ++step) {
    ASSERT_EQ(writer.Save(step, state.slices, std::nullopt), absl::OkStatus());
    ASSERT_TRUE(writer.WaitIdle(absl::Seconds(60)));
  }
  EXPECT_EQ(pool.device_allocations(), static_cast<int64_t>(kShapes.size()) + 1);
  EXPECT_EQ(pool.UsageOf(Purpose::kWorkspace).bytes, 4 * (301 * 1021 + 7 + 30 + 9 + 1 + 1 + 18));
}

TEST(Checkpoint, AFailedSaveLeavesNoFileAndTheNextOneWorks) {
  Pool pool{Device{}};
  TempDir folder;
  Stream stream;
  const State state(pool, kShapes, 1);
  signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is then an error like a full disk
  std::vector<absl::StatusOr<v1::CheckpointPart>> parts;
  Writer writer(
      folder.path(), {}, pool, stream,
      [&](int64_t, absl::StatusOr<v1::CheckpointPart> part) { parts.push_back(std::move(part)); });
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  for (const rlim_t limit : {rlim_t{0}, rlim_t{100}, rlim_t{500000}}) {
    const rlimit small{limit, old.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    ASSERT_EQ(writer.Save(1, state.slices, std::nullopt), absl::OkStatus());
    const bool idle = writer.WaitIdle(absl::Seconds(60));
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    ASSERT_TRUE(idle);
    EXPECT_FALSE(parts.back().ok());
    EXPECT_THAT(std::string(parts.back().status().message()), HasSubstr(folder.path()));
    EXPECT_TRUE(fs::is_empty(folder.path()));  // no folder of the step either
  }
  ASSERT_EQ(writer.Save(2, state.slices, std::nullopt), absl::OkStatus());
  ASSERT_TRUE(writer.WaitIdle(absl::Seconds(60)));
  ASSERT_TRUE(parts.back().ok());
  const State loaded = Blank(pool);
  EXPECT_EQ(Load(Join({*parts.back()}, 2), StepFolder(folder.path(), 2), loaded.slices),
            absl::OkStatus());
  EXPECT_TRUE(loaded == state);
}

// Case: one rank met a full disk; what the other had written for the step stayed for ever.
TEST(Checkpoint, WhatIsDiscardedGoesAndNothingElse) {
  Pool pool{Device{}};
  TempDir folder;
  Stream stream;
  const State state(pool, kShapes, 1);
  v1::RankRef self, peer;
  peer.set_rank(1);
  std::vector<v1::CheckpointPart> parts;
  const auto done = [&](int64_t, absl::StatusOr<v1::CheckpointPart> part) {
    parts.push_back(*std::move(part));
  };
  Writer mine(folder.path(), self, pool, stream, done);
  Writer theirs(folder.path(), peer, pool, stream, done);
  const auto save = [&](Writer& writer, int64_t step) {
    ASSERT_EQ(writer.Save(step, state.slices, std::nullopt), absl::OkStatus());
    ASSERT_TRUE(writer.WaitIdle(absl::Seconds(60)));
  };
  save(mine, 1);
  save(theirs, 1);
  save(mine, 2);
  ASSERT_EQ(FilesIn(folder.path()).size(), 3u);
  mine.Discard(1);
  mine.Discard(7);  // never written
  ASSERT_TRUE(mine.WaitIdle(absl::Seconds(60)));
  EXPECT_EQ(FilesIn(StepFolder(folder.path(), 1)).size(), 1u);
  EXPECT_EQ(FilesIn(StepFolder(folder.path(), 2)).size(), 1u);
  theirs.Discard(1);
  ASSERT_TRUE(theirs.WaitIdle(absl::Seconds(60)));
  EXPECT_FALSE(fs::exists(StepFolder(folder.path(), 1)));
  // Told before it is written, it goes once it is.
  mine.Discard(3);
  save(mine, 3);
  EXPECT_FALSE(fs::exists(StepFolder(folder.path(), 3)));
  const State loaded = Blank(pool);
  EXPECT_EQ(Load(Join({parts[2]}, 2), StepFolder(folder.path(), 2), loaded.slices),
            absl::OkStatus());
}

// Case: a stalled disk held the step thread in the next save until the attempt was ended.
TEST(Checkpoint, WhileASaveIsUnderWayThereIsNoOtherAndNobodyWaits) {
  Pool pool{Device{}};
  TempDir folder;
  Stream stream;
  const State state(pool, kShapes, 1), later(pool, kShapes, 2);
  std::promise<void> disk_works;
  std::future<void> works = disk_works.get_future();
  std::vector<int64_t> done;
  Writer writer(folder.path(), {}, pool, stream,
                [&](int64_t step, absl::StatusOr<v1::CheckpointPart> part) {
                  EXPECT_TRUE(part.ok());
                  done.push_back(step);
                  if (step == 1) works.wait();
                });
  ASSERT_EQ(writer.Save(1, state.slices, std::nullopt), absl::OkStatus());
  const absl::Status busy = writer.Save(2, later.slices, std::nullopt);
  EXPECT_EQ(busy.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(busy.message()),
              AllOf(HasSubstr("the save of step 1 is still being written"),
                    HasSubstr("checkpoint.interval_steps")));
  EXPECT_FALSE(writer.WaitIdle(absl::Milliseconds(1)));
  disk_works.set_value();
  ASSERT_TRUE(writer.WaitIdle(absl::Seconds(60)));
  ASSERT_EQ(writer.Save(3, later.slices, std::nullopt), absl::OkStatus());
  ASSERT_TRUE(writer.WaitIdle(absl::Seconds(60)));
  EXPECT_THAT(done, ::testing::ElementsAre(1, 3));
}

// Case: a snapshot that did not fit ended the rank.
TEST(Checkpoint, ASnapshotThatDoesNotFitIsAnErrorAndTrainingGoesOn) {
  Pool pool{Device{}};
  TempDir folder;
  Stream stream;
  const State state(pool, {{4}}, 1);
  NamedSlice huge = state.slices[0];  // never read: nothing can hold it
  huge.view = TensorView(huge.view.data(), DType::kF32, Shape{int64_t{1} << 50});
  Writer writer(folder.path(), {}, pool, stream,
                [](int64_t, absl::StatusOr<v1::CheckpointPart>) { FAIL(); });
  const absl::Status status = writer.Save(1, {&huge, 1}, std::nullopt);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the snapshot of a checkpoint"));
  EXPECT_TRUE(writer.WaitIdle(absl::ZeroDuration()));
}

TEST(Checkpoint, ACutFileNeverLoads) {
  Pool pool{Device{}};
  TempDir folder;
  const State state(pool, {{40, 3}, {5}}, 1);
  const auto manifest = SaveAs(1, state, 1, folder.path(), pool);
  ASSERT_TRUE(manifest.ok());
  const std::string path = FilesIn(folder.path()).front();
  const std::string whole = ReadFile(path);
  for (size_t length = 0; length < whole.size(); ++length) {
    WriteFile(path, whole.substr(0, length));
    const absl::Status status = Load(*manifest, StepFolder(folder.path(), 1), state.slices);
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << length << " " << status;
    ASSERT_THAT(std::string(status.message()), HasSubstr(path));
  }
  WriteFile(path, whole);
  EXPECT_EQ(Load(*manifest, StepFolder(folder.path(), 1), state.slices), absl::OkStatus());
}

TEST(Checkpoint, ADamagedByteIsFound) {
  Pool pool{Device{}};
  TempDir folder;
  const State state(pool, {{40, 3}, {5}}, 1);
  const auto manifest = SaveAs(1, state, 1, folder.path(), pool);
  ASSERT_TRUE(manifest.ok());
  const std::string path = FilesIn(folder.path()).front();
  const std::string whole = ReadFile(path);
  const size_t data = whole.size() - 125 * sizeof(float);
  for (size_t at = data; at < whole.size(); ++at) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    WriteFile(path, bad);
    const State loaded(pool, {{40, 3}, {5}}, 0);
    const absl::Status status = Load(*manifest, StepFolder(folder.path(), 1), loaded.slices);
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << at;
    ASSERT_THAT(std::string(status.message()), AllOf(HasSubstr(path), HasSubstr("t")));
  }
}

TEST(Checkpoint, AMissingFileIsNamed) {
  Pool pool{Device{}};
  TempDir folder;
  const State state(pool, kShapes, 1);
  const auto manifest = SaveAs(2, state, 1, folder.path(), pool);
  ASSERT_TRUE(manifest.ok());
  const std::string path = FilesIn(folder.path()).front();
  fs::remove(path);
  const absl::Status status = Load(*manifest, StepFolder(folder.path(), 1), state.slices);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST(Checkpoint, EverythingThatDoesNotFitTheModelIsListedAtOnceAndNothingIsRead) {
  Pool pool{Device{}};
  TempDir folder;
  const State state(pool, kShapes, 1);
  const auto manifest = SaveAs(1, state, 1, folder.path(), pool);
  ASSERT_TRUE(manifest.ok());
  State other(pool, {{301, 1021}, {8}, {3, 5, 2}}, 77);
  other.slices.push_back(other.slices[2]);
  other.slices.back().name = "layers.9.mlp.up.weight";
  other.slices.push_back(other.slices[2]);
  other.slices.back().name = "layers.10.mlp.up.weight";
  const absl::Status status = Load(*manifest, StepFolder(folder.path(), 1), other.slices);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("layers.9.mlp.up.weight"), HasSubstr("layers.10.mlp.up.weight"),
                    HasSubstr("t1 is F32 [7] there but F32 [8] here")));
  EXPECT_TRUE(other == State(pool, {{301, 1021}, {8}, {3, 5, 2}}, 77));
}

// A file whose own header disagrees with the manifest must not be read past its end.
TEST(Checkpoint, AFileOfAnotherTypeThanTheManifestSaysIsRefused) {
  Pool pool{Device{}};
  TempDir folder;
  const State state(pool, {{64}}, 1);
  auto manifest = SaveAs(1, state, 1, folder.path(), pool);
  ASSERT_TRUE(manifest.ok());
  const std::string path = FilesIn(folder.path()).front();
  const std::vector<TensorDeclaration> bytes = {{"t0", DType::kU8, Shape{64}}};
  auto writer = SafetensorsWriter::Create(path, bytes);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Append(std::vector<std::byte>(64)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  manifest->mutable_files(0)->set_bytes(static_cast<int64_t>(fs::file_size(path)));
  const absl::Status status = Load(*manifest, StepFolder(folder.path(), 1), state.slices);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("U8"), HasSubstr("F32")));
}

}  // namespace
}  // namespace mega::checkpoint
