// A message about a rank counts only when all that it names is so: the job, its newest attempt and
// epoch, a rank of it, and the node that the rank runs on. One field at a time, for every kind of
// message.
#include <functional>
#include <string>
#include <vector>

#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

struct Kind {
  std::string name;
  std::function<v1::WorkerMessage(const v1::RankRef&)> about;
  bool is_of_start = false;  // has a meaning before the first step only
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

std::vector<Kind> Kinds() {
  const auto exited = [](const v1::RankRef& rank) {
    v1::WorkerMessage message;
    *message.mutable_rank_exited()->mutable_rank() = rank;
    return message;
  };
  const auto progress = [](const v1::RankRef& rank) {
    v1::WorkerMessage message;
    *message.mutable_rank_progress()->mutable_rank() = rank;
    message.mutable_rank_progress()->set_phase("forward");
    message.mutable_rank_progress()->set_step(7);
    return message;
  };
  const auto ready = [](const v1::RankRef& rank) {
    v1::WorkerMessage message;
    *message.mutable_rank_ready()->mutable_rank() = rank;
    message.mutable_rank_ready()->set_address("somewhere");
    return message;
  };
  const auto part = [](const v1::RankRef& rank) {
    v1::WorkerMessage message;
    v1::CheckpointPart& saved = *message.mutable_checkpoint_part();
    saved.set_job_uid(rank.job_uid());
    saved.set_attempt(rank.attempt());
    saved.set_epoch(rank.epoch());
    saved.set_rank(rank.rank());
    saved.set_step(20);
    saved.set_directory("/checkpoints/20");
    return message;
  };
  const auto failed = [](const v1::RankRef& rank) {
    v1::WorkerMessage message;
    *message.mutable_checkpoint_failed()->mutable_rank() = rank;
    message.mutable_checkpoint_failed()->set_step(20);
    return message;
  };
  return {{"RankExited", exited},
          {"RankProgress", progress},
          {"RankReady", ready, true},
          {"CheckpointPart", part},
          {"CheckpointFailed", failed}};
}

// Rank 0 of "job" runs on a and rank 1 on b; c runs "other", of one rank.
void Fill(Cluster& cluster, bool is_starting) {
  cluster.Hello("a", {.devices = 1});
  cluster.Hello("b", {.devices = 1});
  cluster.Submit("job", 2);
  cluster.Hello("c", {.devices = 1});
  cluster.Submit("other", 1);
  cluster.Submit("waiting", 1);
  if (is_starting) return;
  cluster.Ready("job");
  cluster.StepDone("job", 1);
}

std::vector<v1::RankRef> Wrong(const v1::RankRef& right) {
  std::vector<v1::RankRef> wrong;
  const auto add = [&](const auto& bend) { bend(wrong.emplace_back(right)); };
  for (const char* uid : {"", "nothing", "other", "waiting"}) {
    add([&](v1::RankRef& ref) { ref.set_job_uid(uid); });
  }
  for (const int64_t off : {int64_t{-1}, int64_t{1}, int64_t{1} << 60}) {
    add([&](v1::RankRef& ref) { ref.set_attempt(ref.attempt() + off); });
    add([&](v1::RankRef& ref) { ref.set_epoch(ref.epoch() + off); });
  }
  for (const int64_t rank :
       {int64_t{1}, int64_t{2}, int64_t{-1}, int64_t{1} << 32, INT64_MIN, INT64_MAX}) {
    add([&](v1::RankRef& ref) { ref.set_rank(rank); });
  }
  return wrong;
}

class FenceTest : public ::testing::TestWithParam<Kind> {};

TEST_P(FenceTest, WhatNamesAnythingElseChangesNothing) {
  const Kind& kind = GetParam();
  Cluster cluster;
  Fill(cluster, kind.is_of_start);
  const v1::RankRef right = cluster.ref("job", 0);
  const v1::CoreSnapshot before = ToSnapshot(cluster.state);
  const auto changes = [&](const NodeId& node, const v1::RankRef& rank) {
    cluster.Say(node, kind.about(rank));
    return !google::protobuf::util::MessageDifferencer::Equals(before, ToSnapshot(cluster.state));
  };
  for (const v1::RankRef& wrong : Wrong(right)) {
    ASSERT_FALSE(changes("a", wrong)) << wrong.ShortDebugString();
  }
  for (const char* node : {"b", "c"}) ASSERT_FALSE(changes(node, right)) << node;
  EXPECT_TRUE(changes("a", right)) << "and what is right counts";
}

INSTANTIATE_TEST_SUITE_P(Messages, FenceTest, ::testing::ValuesIn(Kinds()),
                         [](const auto& info) { return info.param.name; });

TEST(Fence, AStepReportOfAnotherAttemptChangesNothing) {
  Cluster cluster;
  Fill(cluster, /*is_starting=*/false);
  const v1::RankRef right = cluster.ref("job", 0);
  const v1::CoreSnapshot before = ToSnapshot(cluster.state);
  const auto changes = [&](const v1::RankRef& rank, int64_t step) {
    v1::CoreEvent event;
    event.mutable_step_report()->set_job_uid(rank.job_uid());
    event.mutable_step_report()->set_attempt(rank.attempt());
    event.mutable_step_report()->set_epoch(rank.epoch());
    event.mutable_step_report()->set_step(step);
    cluster.Feed(event);
    return !google::protobuf::util::MessageDifferencer::Equals(before, ToSnapshot(cluster.state));
  };
  for (const v1::RankRef& wrong : Wrong(right)) {
    if (wrong.rank() == 0) {
      ASSERT_FALSE(changes(wrong, 5)) << wrong.ShortDebugString();
    }
  }
  for (const int64_t step : {int64_t{-1}, INT64_MAX}) ASSERT_FALSE(changes(right, step)) << step;
  EXPECT_TRUE(changes(right, 5));
}

}  // namespace
}  // namespace mega::core
