// A checkpoint exists when all of it does.
#include "coordinator/core/jobs/manifest.h"

#include <algorithm>
#include <array>
#include <random>

#include "absl/time/clock.h"
#include "base/message_size.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::HasSubstr;

TEST(Checkpoint, IsCommittedWithTheLastPartAndOnlyOnce) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Save(uid, 20, 0);
  cluster.Save(uid, 20, 0);
  EXPECT_TRUE(cluster.job(uid).checkpoints().empty());
  cluster.Save(uid, 20, 1);
  ASSERT_EQ(cluster.job(uid).checkpoints_size(), 1);
  const v1::Manifest manifest = cluster.job(uid).checkpoints(0);
  EXPECT_EQ(manifest.step(), 20);
  EXPECT_EQ(manifest.total_bytes(), 64);
  EXPECT_EQ(manifest.slices_size(), 2);
  EXPECT_EQ(cluster.Count("b", v1::Command::kCheckpointCommitted), 1);

  cluster.Save(uid, 20, 1);  // its answer was lost
  EXPECT_EQ(cluster.job(uid).checkpoints_size(), 1);
  EXPECT_EQ(cluster.Count("a", v1::Command::kCheckpointCommitted), 1);
  EXPECT_EQ(cluster.Count("b", v1::Command::kCheckpointCommitted), 2);
}

// Case: a rank killed right after its commit left an attempt that stood before its own checkpoint.
TEST(Checkpoint, ItsStepIsMadeByTheAttemptWithoutAReportOfIt) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  for (const int64_t rank : {0, 1}) cluster.Save(uid, 20, rank);
  const v1::Job& job = cluster.job(uid);
  ASSERT_EQ(job.attempts_size(), 1);
  EXPECT_EQ(job.attempts(0).last_step(), 20);
  EXPECT_EQ(job.last_step(), 20);
}

// Case: the whole manifest went to every node, and only rank 0 has a use for it.
TEST(Checkpoint, OnlyTheNodeOfRank0IsSentTheWholeManifest) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  for (const int64_t rank : {0, 1}) cluster.Save(uid, 20, rank);
  cluster.Save(uid, 20, 1);  // its answer was lost
  ASSERT_EQ(cluster.Count("b", v1::Command::kCheckpointCommitted), 2);
  const v1::Manifest& whole = cluster.sent["a"].back().checkpoint_committed().manifest();
  EXPECT_EQ(whole.slices_size(), 2);
  EXPECT_EQ(whole.directory(), "/checkpoints/20");
  const v1::Manifest& which = cluster.sent["b"].back().checkpoint_committed().manifest();
  EXPECT_EQ(which.step(), 20);
  EXPECT_EQ(which.epoch(), whole.epoch());
  EXPECT_EQ(which.attempt(), whole.attempt());
  EXPECT_EQ(which.slices_size() + which.tensors_size() + which.files_size(), 0);
}

TEST(Checkpoint, PartsThatTheCoordinatorForgotAreSentAgain) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Save(uid, 20, 0);
  cluster.Restart();
  cluster.Hello("a", {.devices = 1, .running = {cluster.ref(uid, 0)}});
  cluster.Hello("b", {.devices = 1, .running = {cluster.ref(uid, 1)}});
  cluster.Save(uid, 20, 1);
  EXPECT_TRUE(cluster.job(uid).checkpoints().empty());
  cluster.Save(uid, 20, 0);
  EXPECT_EQ(cluster.job(uid).checkpoints_size(), 1);
}

TEST(Checkpoint, TheNewestNeverMovesBack) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Save(uid, 20, 0);
  for (const int64_t rank : {0, 1}) cluster.Save(uid, 30, rank);
  cluster.Save(uid, 20, 1);  // complete, but late
  EXPECT_EQ(cluster.job(uid).checkpoints_size(), 1);
  EXPECT_EQ(cluster.job(uid).checkpoints(0).step(), 30);
}

TEST(Checkpoint, OldOnesAreDeletedBeyondKeep) {
  Cluster cluster;
  cluster.Hello("a");
  cluster.Submit("job", 1, [](v1::CoreSubmit& submit) {
    submit.mutable_resolved_spec()->mutable_checkpoint()->set_keep(2);
  });
  for (const int64_t step : {10, 20, 30, 40}) cluster.Save("job", step, 0);
  ASSERT_EQ(cluster.job("job").checkpoints_size(), 2);
  EXPECT_EQ(cluster.job("job").checkpoints(0).step(), 30);
  EXPECT_EQ(cluster.Count("a", v1::Command::kDeleteCheckpoint), 2);
}

// Case: one damaged byte of the newest checkpoint failed a job that had older ones.
TEST(Checkpoint, OneThatCannotBeReadIsPassedOverForTheOneBefore) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  for (const int64_t step : {10, 20}) {
    for (const int64_t rank : {0, 1}) cluster.Save(uid, step, rank);
  }
  cluster.StepDone(uid, 25);
  const auto end = [&](int code) {
    cluster.Exit(uid, 0, 1);  // felt the end of its peer, and was heard of first
    cluster.Exit(uid, 1, code);
    cluster.Run(absl::Seconds(5));
  };
  end(1);
  ASSERT_EQ(cluster.attempt(uid).start_step(), 20);
  EXPECT_THAT(cluster.events(uid), testing::Not(testing::Contains("CHECKPOINT_DAMAGED")));

  end(65);
  EXPECT_THAT(cluster.events(uid), testing::Contains("CHECKPOINT_DAMAGED"));
  const v1::Attempt& ended = cluster.job(uid).attempts(1);
  EXPECT_EQ(ended.failed_rank(), 1);
  EXPECT_EQ(ended.failed_node(), "");
  EXPECT_THAT(ended.cause(), HasSubstr("could not read the checkpoint of step 20"));
  ASSERT_EQ(cluster.job(uid).checkpoints_size(), 1);
  EXPECT_EQ(cluster.attempt(uid).start_step(), 10);
  EXPECT_EQ(cluster.sent["b"].back().start_ranks().load().step(), 10);
  EXPECT_EQ(cluster.Count("a", v1::Command::kDeleteCheckpoint), 0) << "its files may tell why";
  EXPECT_EQ(cluster.job(uid).restarts(), 2);
  EXPECT_EQ(cluster.job(uid).recoveries().rbegin()->from_step(), 10);

  // What it trains again it saves again.
  cluster.StepDone(uid, 20);
  for (const int64_t rank : {0, 1}) cluster.Save(uid, 20, rank);
  EXPECT_EQ(cluster.job(uid).checkpoints().rbegin()->epoch(), cluster.attempt(uid).epoch());
}

TEST(Checkpoint, WithoutAnyThatCanBeReadTheJobBeginsAnewWithinItsBudget) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 1});
  cluster.Submit("job", 1);
  cluster.StepDone("job", 5);
  cluster.Save("job", 5, 0);
  for (const int code : {1, 65}) {
    cluster.Exit("job", 0, code);
    cluster.Run(absl::Seconds(5));
  }
  EXPECT_EQ(cluster.attempt("job").number(), 3);
  EXPECT_FALSE(cluster.attempt("job").has_load());
  EXPECT_EQ(cluster.attempt("job").start_step(), 0);
  for (int i = 0; i < 3; ++i) {  // without a checkpoint the code is a failure like any other
    cluster.Exit("job", 0, 65);
    cluster.Run(absl::Seconds(5));
  }
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(cluster.job("job").reason(), HasSubstr("gained no step"));
}

TEST(Checkpoint, AFailedOneIsAnEventAndTheJobGoesOn) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  v1::WorkerMessage message;
  *message.mutable_checkpoint_failed()->mutable_rank() = cluster.ref(uid, 1);
  message.mutable_checkpoint_failed()->set_message("No space left on device");
  cluster.Say("b", message);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_EQ(cluster.events(uid).back(), "CHECKPOINT_FAILED");
}

// Case: one rank met a full disk, and the others' parts of that step stayed on it for ever.
TEST(Checkpoint, WhenARankCannotSaveTheOthersTakeTheirPartsBack) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Save(uid, 20, 0);
  v1::WorkerMessage failed;
  *failed.mutable_checkpoint_failed()->mutable_rank() = cluster.ref(uid, 1);
  failed.mutable_checkpoint_failed()->set_step(20);
  failed.mutable_checkpoint_failed()->set_message("No space left on device");
  cluster.Say("b", failed);
  for (const char* node : {"a", "b"}) {
    ASSERT_EQ(cluster.Count(node, v1::Command::kCheckpointRejected), 1);
    const v1::CheckpointRejected& rejected = cluster.sent[node].back().checkpoint_rejected();
    EXPECT_EQ(rejected.step(), 20);
    EXPECT_EQ(rejected.epoch(), cluster.attempt(uid).epoch());
    EXPECT_THAT(rejected.reason(), HasSubstr("No space left on device"));
  }
  // More failures of the step are events and nothing else; a late part changes nothing.
  *failed.mutable_checkpoint_failed()->mutable_rank() = cluster.ref(uid, 0);
  cluster.Say("a", failed);
  cluster.Save(uid, 20, 1);
  cluster.Save(uid, 20, 0);
  EXPECT_EQ(cluster.Count("a", v1::Command::kCheckpointRejected), 1);
  EXPECT_TRUE(cluster.job(uid).checkpoints().empty());

  for (const int64_t rank : {0, 1}) cluster.Save(uid, 30, rank);
  ASSERT_EQ(cluster.job(uid).checkpoints_size(), 1);
  // What is committed stays.
  failed.mutable_checkpoint_failed()->set_step(30);
  cluster.Say("a", failed);
  failed.mutable_checkpoint_failed()->set_step(-7);
  cluster.Say("a", failed);
  EXPECT_EQ(cluster.Count("a", v1::Command::kCheckpointRejected), 1);
}

TEST(Checkpoint, OneThatDoesNotFitTogetherIsRejectedAndTheJobGoesOn) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Save(uid, 20, 0);
  v1::WorkerMessage message;
  *message.mutable_checkpoint_part() = cluster.Part(uid, 20, 1);
  message.mutable_checkpoint_part()->mutable_slices(0)->set_offset(0, 0);
  cluster.Say("b", message);
  EXPECT_TRUE(cluster.job(uid).checkpoints().empty());
  EXPECT_EQ(cluster.events(uid).back(), "CHECKPOINT_REJECTED");
  // The ranks wait for an answer to their last save.
  EXPECT_EQ(cluster.Count("a", v1::Command::kCheckpointRejected), 1);
  EXPECT_EQ(cluster.Count("b", v1::Command::kCheckpointRejected), 1);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RUNNING);
}

TEST(Checkpoint, PartsUnderWayAreBounded) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  for (int64_t step = 1; step <= 1000; ++step) cluster.Save(uid, step, 0);
  EXPECT_LE(cluster.state.live.parts.size(), 8u) << "four under way, and four given up";
}

// One rank's part with a single tensor, to be bent.
v1::CheckpointPart Whole() {
  v1::CheckpointPart part;
  part.set_step(5);
  part.set_directory("/d");
  part.mutable_state()->set_step(5);
  v1::TensorInfo& tensor = *part.add_tensors();
  tensor.set_name("w");
  tensor.set_dtype("F32");
  tensor.add_global_shape(4);
  tensor.add_global_shape(6);
  part.add_files()->set_name("f");
  return part;
}
void AddSlice(v1::CheckpointPart& part, int64_t row, int64_t column, int64_t rows,
              int64_t columns) {
  v1::TensorSlice& slice = *part.add_slices();
  slice.set_tensor("w");
  slice.set_file("f");
  slice.add_offset(row);
  slice.add_offset(column);
  slice.add_shape(rows);
  slice.add_shape(columns);
}
std::string Error(const v1::CheckpointPart& part) {
  return std::string(AssembleManifest({&part}).status().message());
}

TEST(Manifest, AcceptsEveryTilingAndNothingElse) {
  v1::CheckpointPart tiled = Whole();
  AddSlice(tiled, 0, 0, 2, 6);
  AddSlice(tiled, 2, 0, 2, 1);
  AddSlice(tiled, 2, 1, 2, 5);
  AddSlice(tiled, 1, 1, 0, 3);  // empty slices are harmless
  EXPECT_EQ(Error(tiled), "");

  v1::CheckpointPart gap = Whole();
  AddSlice(gap, 0, 0, 3, 6);
  EXPECT_THAT(Error(gap), HasSubstr("cover 18 of its 24"));

  v1::CheckpointPart overlap = Whole();
  AddSlice(overlap, 0, 0, 2, 6);
  AddSlice(overlap, 1, 0, 2, 6);
  EXPECT_THAT(Error(overlap), HasSubstr("overlap"));

  v1::CheckpointPart outside = Whole();
  AddSlice(outside, 1, 0, 4, 6);
  EXPECT_THAT(Error(outside), HasSubstr("not inside"));
}

// Cuts a box at random until all pieces are small.
void CutUp(v1::CheckpointPart& part, int64_t row, int64_t column, int64_t rows, int64_t columns,
           std::mt19937& random) {
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  if (rows * columns < 3 || below(8) == 0) return AddSlice(part, row, column, rows, columns);
  if (rows > 1 && (columns == 1 || below(2) == 0)) {
    const int64_t cut = 1 + below(rows - 1);
    CutUp(part, row, column, cut, columns, random);
    return CutUp(part, row + cut, column, rows - cut, columns, random);
  }
  const int64_t cut = 1 + below(columns - 1);
  CutUp(part, row, column, rows, cut, random);
  CutUp(part, row, column + cut, rows, columns - cut, random);
}

TEST(Manifest, JudgesRandomTilingsAsCountingEveryElementDoes) {
  std::mt19937 random(1);
  int64_t wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    v1::CheckpointPart part = Whole();
    CutUp(part, 0, 0, 4, 6, random);
    if (i % 2 == 1) {  // move some slices; the sizes still add up
      for (v1::TensorSlice& slice : *part.mutable_slices()) {
        if (random() % 4 != 0) continue;
        slice.set_offset(0, static_cast<int64_t>(random() % (5 - slice.shape(0))));
        slice.set_offset(1, static_cast<int64_t>(random() % (7 - slice.shape(1))));
      }
    }
    std::array<int, 24> held{};
    for (const v1::TensorSlice& slice : part.slices()) {
      for (int64_t r = 0; r < slice.shape(0); ++r) {
        for (int64_t c = 0; c < slice.shape(1); ++c) {
          ++held[(slice.offset(0) + r) * 6 + slice.offset(1) + c];
        }
      }
    }
    const bool is_whole = std::ranges::all_of(held, [](int n) { return n == 1; });
    wrong += is_whole ? 0 : 1;
    EXPECT_EQ(Error(part).empty(), is_whole) << part.ShortDebugString();
  }
  EXPECT_GT(wrong, 500);
}

// On the coordinator's one thread: columns that all share their rows once took minutes.
TEST(Manifest, ManySlicesThatShareRowsAreJudgedAtOnce) {
  constexpr int64_t kColumns = 200'000;
  v1::CheckpointPart part = Whole();
  part.mutable_tensors(0)->set_global_shape(1, kColumns);
  for (int64_t column = 0; column < kColumns; ++column) AddSlice(part, 0, column, 4, 1);
  const absl::Time start = absl::Now();
  EXPECT_EQ(Error(part), "");
  part.mutable_slices(0)->set_offset(1, 1);
  EXPECT_THAT(Error(part), HasSubstr("overlap"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST(Manifest, TrustsNoNumberAndNoName) {
  v1::CheckpointPart huge = Whole();
  huge.mutable_tensors(0)->set_global_shape(0, INT64_MAX);
  AddSlice(huge, 0, 0, INT64_MAX, 6);
  EXPECT_THAT(Error(huge), HasSubstr("impossible shape"));

  v1::CheckpointPart negative = Whole();
  AddSlice(negative, INT64_MIN, 0, 4, 6);
  EXPECT_THAT(Error(negative), HasSubstr("not inside"));

  for (const char* name : {"../f", "/f", "a/f", "", "."}) {
    v1::CheckpointPart escape = Whole();
    escape.mutable_files(0)->set_name(name);
    EXPECT_THAT(Error(escape), HasSubstr("not a plain name")) << name;
  }
  v1::CheckpointPart bytes = Whole();
  bytes.mutable_files(0)->set_bytes(INT64_MAX);
  *bytes.add_files() = bytes.files(0);
  bytes.mutable_files(1)->set_name("g");
  EXPECT_THAT(Error(bytes), HasSubstr("impossible size"));

  v1::CheckpointPart unknown = Whole();
  AddSlice(unknown, 0, 0, 4, 6);
  unknown.mutable_slices(0)->set_tensor("other");
  EXPECT_THAT(Error(unknown), HasSubstr("does not list"));

  v1::CheckpointPart elsewhere = Whole();
  AddSlice(elsewhere, 0, 0, 4, 6);
  elsewhere.mutable_slices(0)->set_file("other");
  EXPECT_THAT(Error(elsewhere), HasSubstr("did not write"));
}

TEST(Manifest, OneThatFitsNoMessageIsRefused) {
  v1::CheckpointPart part = Whole();
  AddSlice(part, 0, 0, 4, 6);
  part.set_directory("/" + std::string(kMostMessageBytes / 2, 'd'));
  EXPECT_THAT(Error(part), HasSubstr("fit a message"));
}

TEST(Manifest, AScalarAndADisagreement) {
  v1::CheckpointPart scalar = Whole();
  scalar.mutable_tensors(0)->clear_global_shape();
  v1::TensorSlice& slice = *scalar.add_slices();
  slice.set_tensor("w");
  slice.set_file("f");
  EXPECT_EQ(Error(scalar), "");

  v1::CheckpointPart first = Whole(), second = Whole();
  AddSlice(first, 0, 0, 4, 6);
  second.set_rank(1);
  second.mutable_files(0)->set_name("g");
  second.mutable_tensors(0)->set_dtype("BF16");
  EXPECT_THAT(std::string(AssembleManifest({&first, &second}).status().message()),
              HasSubstr("disagree"));
}

}  // namespace
}  // namespace mega::core
