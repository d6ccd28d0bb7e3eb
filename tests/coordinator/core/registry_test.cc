// What users ask of committed checkpoints: some stay, some go.
#include "coordinator/core/jobs/registry.h"

#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kNotFound = static_cast<int>(absl::StatusCode::kNotFound);
constexpr int kFailedPrecondition = static_cast<int>(absl::StatusCode::kFailedPrecondition);

// A running pair that keeps two checkpoints.
struct Saved {
  explicit Saved(std::initializer_list<int64_t> steps) {
    cluster.Hello("a", {.devices = 1});
    cluster.Hello("b", {.devices = 1});
    cluster.Submit("job", 2, [](v1::CoreSubmit& submit) {
      submit.mutable_resolved_spec()->mutable_checkpoint()->set_keep(2);
    });
    cluster.Ready("job");
    cluster.StepDone("job", 1);
    for (const int64_t step : steps) Save(step);
  }
  void Save(int64_t step) {
    for (const int64_t rank : {0, 1}) cluster.Save("job", step, rank);
  }
  v1::ReplyCall Pin(int64_t step, bool pinned = true) {
    v1::CoreRequest request;
    request.set_uid("job");
    request.mutable_pin_checkpoint()->set_step(step);
    request.mutable_pin_checkpoint()->set_pinned(pinned);
    return cluster.Ask(std::move(request));
  }
  v1::ReplyCall Delete(int64_t step, bool force = false) {
    v1::CoreRequest request;
    request.set_uid("job");
    request.mutable_delete_checkpoint()->set_step(step);
    request.mutable_delete_checkpoint()->set_force(force);
    return cluster.Ask(std::move(request));
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> steps;
    for (const v1::Manifest& manifest : cluster.job("job").checkpoints()) {
      steps.push_back(manifest.step());
    }
    return steps;
  }
  int64_t removals() const { return cluster.Count("a", v1::Command::kDeleteCheckpoint); }
  void Cancel() {
    cluster.Cancel("job");
    for (const int64_t rank : {0, 1}) cluster.Exit("job", rank, 0, 15, /*by_worker=*/true);
    ASSERT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_CANCELLED);
  }

  Cluster cluster;
};

TEST(Pin, RetentionLeavesThemAloneAndCountsTheOthers) {
  Saved saved({10, 20});
  EXPECT_EQ(saved.Pin(10).code(), 0);
  for (const int64_t step : {30, 40}) saved.Save(step);
  EXPECT_THAT(saved.steps(), ElementsAre(10, 30, 40));
  EXPECT_EQ(saved.removals(), 1);
  EXPECT_EQ(saved.Pin(40).code(), 0);
  saved.Save(50);
  EXPECT_THAT(saved.steps(), ElementsAre(10, 30, 40, 50));
}

TEST(Pin, UnpinnedItIsOneOfTheOthersFromTheNextCheckpointOn) {
  Saved saved({10, 20});
  saved.Pin(10);
  saved.Save(30);
  EXPECT_EQ(saved.Pin(10, false).code(), 0);
  EXPECT_THAT(saved.steps(), ElementsAre(10, 20, 30));
  EXPECT_EQ(saved.removals(), 0);
  saved.Save(40);
  EXPECT_THAT(saved.steps(), ElementsAre(30, 40));
  EXPECT_EQ(saved.removals(), 2);
}

TEST(Pin, AnswersTheCheckpointAsAJobShowsItAndIsInTheStoryOnce) {
  Saved saved({10, 20});
  for (int i = 0; i < 2; ++i) {
    const v1::Manifest answer = saved.Pin(10).manifest();
    EXPECT_TRUE(answer.pinned());
    EXPECT_EQ(answer.step(), 10);
    EXPECT_EQ(answer.directory(), "/checkpoints/10");
    EXPECT_EQ(answer.files_size(), 2);
    EXPECT_EQ(answer.slices_size() + answer.tensors_size(), 0);
  }
  EXPECT_EQ(saved.cluster.job("job").checkpoints(0).slices_size(), 2);
  EXPECT_FALSE(saved.Pin(10, false).manifest().pinned());
  const std::vector<std::string> events = saved.cluster.events("job");
  EXPECT_EQ(std::ranges::count(events, "CHECKPOINT_PINNED"), 1);
  EXPECT_EQ(std::ranges::count(events, "CHECKPOINT_UNPINNED"), 1);
}

TEST(Pin, OutlivesTheCoordinatorAndTheJob) {
  Saved saved({10, 20});
  saved.Pin(10);
  saved.cluster.Restart();
  saved.cluster.Hello("a", {.devices = 1, .running = {saved.cluster.ref("job", 0)}});
  saved.cluster.Hello("b", {.devices = 1, .running = {saved.cluster.ref("job", 1)}});
  EXPECT_TRUE(saved.cluster.job("job").checkpoints(0).pinned());
  saved.Cancel();
  EXPECT_EQ(saved.Pin(20).code(), 0);
  EXPECT_TRUE(saved.cluster.job("job").checkpoints(1).pinned());
}

// Case: the record of a job held every manifest that was ever pinned, up to the size of which
// nothing can be written.
TEST(Pin, PinnedOnesFillAtMostHalfOfTheRoom) {
  Saved saved({10, 20});
  const auto bytes = static_cast<int64_t>(saved.cluster.job("job").checkpoints(0).ByteSizeLong());
  saved.cluster.state.options.most_kept_bytes = 2 * (2 * bytes + bytes / 2);
  for (const int64_t step : {10, 20, 10}) EXPECT_EQ(saved.Pin(step).code(), 0) << step;
  saved.Save(30);
  const v1::ReplyCall reply = saved.Pin(30);
  EXPECT_EQ(reply.code(), kFailedPrecondition);
  EXPECT_EQ(reply.reason(), "TOO_MANY_PINNED");
  EXPECT_THAT(reply.message(), HasSubstr("unpin another one, or copy /checkpoints/30"));
  EXPECT_FALSE(saved.cluster.job("job").checkpoints(2).pinned());
  EXPECT_EQ(saved.Pin(10, false).code(), 0);
  EXPECT_EQ(saved.Pin(30).code(), 0);
}

// Case: checkpoint.keep alone led there.
TEST(Retention, ThereIsRoomForSoManyBytesOfManifestsWhateverKeepSays) {
  Saved saved({10, 20});
  const auto bytes = static_cast<int64_t>(saved.cluster.job("job").checkpoints(0).ByteSizeLong());
  saved.cluster.state.options.most_kept_bytes = 2 * bytes + bytes / 2;
  saved.Pin(10);
  saved.Save(30);
  EXPECT_THAT(saved.steps(), ElementsAre(10, 30));
  EXPECT_EQ(saved.removals(), 1);
  EXPECT_EQ(saved.cluster.events("job").back(), "CHECKPOINT_NO_ROOM");
  saved.cluster.state.options.most_kept_bytes = 1;
  saved.Save(40);
  EXPECT_THAT(saved.steps(), ElementsAre(10, 40)) << "what is pinned stays, and so does the newest";
  EXPECT_EQ(saved.removals(), 2);
}

TEST(Registry, AStepThatIsNoCheckpointIsAnsweredWithThoseThatAre) {
  Saved saved({});
  EXPECT_THAT(saved.Pin(10).message(), HasSubstr("has no checkpoint of step 10; it has none"));
  saved.Save(10);
  EXPECT_THAT(saved.Delete(7).message(), HasSubstr("it has that of step 10"));
  saved.Save(20);
  for (const v1::ReplyCall& reply : {saved.Pin(15), saved.Delete(-1, true), saved.Pin(0, false)}) {
    EXPECT_EQ(reply.code(), kNotFound);
    EXPECT_EQ(reply.reason(), "CHECKPOINT_NOT_FOUND");
    EXPECT_THAT(reply.message(), HasSubstr("it has those of steps 10 and 20"));
  }
  v1::CoreRequest nobody;
  nobody.set_uid("other");
  nobody.mutable_pin_checkpoint()->set_step(10);
  EXPECT_EQ(saved.cluster.Ask(nobody).reason(), "JOB_NOT_FOUND");
}

TEST(Delete, ANodeRemovesTheFolderAndTheStoryTellsIt) {
  Saved saved({10, 20});
  EXPECT_EQ(saved.Delete(10).code(), 0);
  EXPECT_THAT(saved.steps(), ElementsAre(20));
  ASSERT_EQ(saved.removals(), 1);
  const v1::DeleteCheckpoint& order = saved.cluster.sent["a"].back().delete_checkpoint();
  EXPECT_EQ(order.step(), 10);
  EXPECT_EQ(order.directory(), "/checkpoints/10");
  EXPECT_EQ(saved.cluster.events("job").back(), "CHECKPOINT_DELETED");
  EXPECT_EQ(saved.Delete(10).code(), kNotFound);
}

TEST(Delete, TheNewestAndAPinnedOneGoByForceAlone) {
  Saved saved({10, 20});
  saved.Pin(10);
  const v1::ReplyCall pinned = saved.Delete(10);
  EXPECT_EQ(pinned.code(), kFailedPrecondition);
  EXPECT_EQ(pinned.reason(), "CHECKPOINT_PINNED");
  const v1::ReplyCall newest = saved.Delete(20);
  EXPECT_EQ(newest.reason(), "CHECKPOINT_NEWEST");
  EXPECT_THAT(newest.message(), HasSubstr("goes on from step 10"));
  EXPECT_THAT(saved.steps(), ElementsAre(10, 20));
  EXPECT_EQ(saved.removals(), 0);

  EXPECT_EQ(saved.Delete(20, /*force=*/true).code(), 0);
  EXPECT_THAT(saved.Delete(10).message(), HasSubstr("is pinned"));
  EXPECT_EQ(saved.Delete(10, /*force=*/true).code(), 0);
  EXPECT_THAT(saved.steps(), ElementsAre());
  EXPECT_EQ(saved.removals(), 2);
}

TEST(Delete, WithoutTheNewestARestartGoesOnFromTheOneBefore) {
  Saved saved({10, 20});
  saved.Delete(20, /*force=*/true);
  saved.cluster.Exit("job", 1, 1);
  saved.cluster.Exit("job", 0, 0, 15, /*by_worker=*/true);
  saved.cluster.Run(absl::Seconds(1));
  EXPECT_EQ(saved.cluster.attempt("job").start_step(), 10);
}

TEST(Delete, NeverWhatRanksAreStartingFrom) {
  Saved saved({10, 20});
  saved.cluster.Exit("job", 1, 1);
  saved.cluster.Exit("job", 0, 0, 15, /*by_worker=*/true);
  saved.cluster.Run(absl::Seconds(1));
  ASSERT_EQ(saved.cluster.attempt("job").start_step(), 20);
  EXPECT_EQ(saved.Delete(20, /*force=*/true).reason(), "CHECKPOINT_IN_USE");
  EXPECT_EQ(saved.Delete(10).code(), 0);
  saved.cluster.Ready("job");
  saved.cluster.StepDone("job", 21);
  EXPECT_EQ(saved.Delete(20, /*force=*/true).code(), 0);
}

TEST(Delete, OfAJobThatHasEndedToo) {
  Saved saved({10, 20});
  saved.Cancel();
  EXPECT_THAT(saved.Delete(20).message(), HasSubstr("what is left of its training"));
  EXPECT_EQ(saved.Delete(10).code(), 0);
  EXPECT_EQ(saved.Delete(20, /*force=*/true).code(), 0);
  EXPECT_EQ(saved.removals(), 2);
  EXPECT_EQ(saved.cluster.job("job").phase(), v1::JOB_PHASE_CANCELLED);
}

TEST(Delete, WhileNobodyIsThereToRemoveItItStays) {
  Saved saved({10, 20});
  saved.Cancel();
  saved.cluster.silent = {"a", "b"};
  saved.cluster.Run(absl::Seconds(20));
  saved.cluster.Pause(absl::Hours(25));
  saved.cluster.Run(absl::Seconds(61));
  ASSERT_TRUE(saved.cluster.state.durable.nodes.empty());
  const v1::ReplyCall reply = saved.Delete(10);
  EXPECT_EQ(reply.reason(), "NO_NODE");
  EXPECT_THAT(reply.message(), HasSubstr("/checkpoints/10"));
  EXPECT_THAT(saved.steps(), ElementsAre(10, 20));
  saved.cluster.Hello("c");
  EXPECT_EQ(saved.Delete(10).code(), 0);
  EXPECT_EQ(saved.cluster.Count("c", v1::Command::kDeleteCheckpoint), 1);
}

v1::ReplyCall AskToSaveNow(Cluster& cluster) {
  v1::CoreRequest request;
  request.set_uid("job");
  request.mutable_save_checkpoint();
  return cluster.Ask(std::move(request));
}

TEST(Save, AllRanksAreToldOnceUntilTheyHaveHeardIt) {
  Saved saved({});
  EXPECT_EQ(AskToSaveNow(saved.cluster).code(), 0);
  EXPECT_EQ(AskToSaveNow(saved.cluster).code(), 0);
  for (const char* node : {"a", "b"}) {
    ASSERT_EQ(saved.cluster.Count(node, v1::Command::kSaveCheckpoint), 1);
    const v1::SaveCheckpoint& order = saved.cluster.sent[node].back().save_checkpoint();
    EXPECT_EQ(order.epoch(), saved.cluster.attempt("job").epoch());
    EXPECT_EQ(order.cause(), "on_demand");
    saved.cluster.AckAll(node);
  }
  EXPECT_EQ(saved.cluster.attempt("job").state(), v1::ATTEMPT_STATE_RUNNING);
  EXPECT_EQ(AskToSaveNow(saved.cluster).code(), 0);
  EXPECT_EQ(saved.cluster.Count("a", v1::Command::kSaveCheckpoint), 2);
}

TEST(Save, WhatDoesNotRunIsRefused) {
  Cluster cluster;
  cluster.Submit("job", 1);
  EXPECT_EQ(AskToSaveNow(cluster).reason(), "NOT_RUNNING");
  cluster.Hello("a");
  EXPECT_EQ(AskToSaveNow(cluster).reason(), "NOT_RUNNING") << "it starts";
  cluster.Cancel("job");
  EXPECT_EQ(AskToSaveNow(cluster).reason(), "JOB_FINISHED");
}

}  // namespace
}  // namespace mega::core
