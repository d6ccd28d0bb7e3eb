// What is forgotten, and what is not.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

TEST(Retention, AnEndedJobIsForgottenAfterItsTimeWithAllThatNamesIt) {
  Cluster cluster;
  cluster.state.options.job_retention = absl::Hours(1);
  cluster.Submit("ended", 1);
  cluster.Submit("waiting", 1);
  cluster.Cancel("ended");
  cluster.Pause(absl::Minutes(50));
  cluster.Run(absl::Seconds(1));
  EXPECT_TRUE(cluster.state.durable.jobs.contains("ended"));

  cluster.Pause(absl::Minutes(10));
  cluster.Run(absl::Seconds(1));
  EXPECT_FALSE(cluster.state.durable.jobs.contains("ended"));
  EXPECT_FALSE(cluster.state.durable.events.contains("ended"));
  EXPECT_FALSE(cluster.state.live.jobs.contains("ended"));
  EXPECT_TRUE(cluster.state.index.ended.empty());
  EXPECT_EQ(cluster.job("waiting").phase(), v1::JOB_PHASE_QUEUED);
  // Its request id may be used again, and makes another job.
  const int64_t call = cluster.Submit("ended", 2);
  EXPECT_EQ(cluster.replies.at(call).job().phase(), v1::JOB_PHASE_QUEUED);
}

TEST(Retention, AnEndedJobIsForgottenWithThePartsOfACheckpointThatNeverWasOne) {
  Cluster cluster;
  cluster.state.options.job_retention = absl::Hours(1);
  const JobUid uid = RunningPair(cluster);
  cluster.Save(uid, 20, 0);
  for (const int64_t rank : {0, 1}) cluster.Exit(uid, rank, 0);
  EXPECT_EQ(cluster.state.live.parts.size(), 1u) << "the last one may still come";
  cluster.Pause(absl::Hours(1));
  cluster.Run(absl::Seconds(1));
  ASSERT_FALSE(cluster.state.durable.jobs.contains(uid));
  EXPECT_TRUE(cluster.state.live.parts.empty());
  EXPECT_TRUE(cluster.state.live.watches.empty());
}

TEST(Retention, OfVeryManyEndedJobsTheOldestGoFirst) {
  Cluster cluster;
  cluster.state.options.most_ended_jobs = 3;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "job" + std::to_string(i);
    cluster.Submit(name, 1);
    cluster.Cancel(name);
    cluster.Pause(absl::Milliseconds(1));
  }
  cluster.Run(absl::Seconds(2));
  std::vector<JobUid> left;
  for (const auto& [uid, job] : cluster.state.durable.jobs) left.push_back(uid);
  EXPECT_THAT(left, testing::ElementsAre("job97", "job98", "job99"));
}

TEST(Retention, ALostNodeIsForgottenWithItsCommandsUnlessItIsCordonedOrHoldsRanks) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Hello("lost");
  cluster.Hello("kept");
  v1::CoreRequest cordon;
  cordon.mutable_cordon_node()->set_name("kept");
  cluster.Ask(cordon);
  for (const int64_t rank : {0, 1}) cluster.Save(uid, 2, rank);  // b never acks that it is told
  cluster.Exit(uid, 0, 1);
  cluster.silent = {"lost", "kept", "b"};
  cluster.Run(absl::Seconds(20));
  EXPECT_EQ(cluster.state.durable.nodes.at("lost").state(), v1::NODE_STATE_LOST);
  const auto of_b = [&] {
    return std::ranges::any_of(cluster.state.durable.commands,
                               [](const auto& entry) { return entry.first.first == "b"; });
  };
  EXPECT_TRUE(of_b());
  cluster.Restart();  // when it was heard of last is durable
  cluster.Pause(absl::Hours(23));
  cluster.Run(absl::Seconds(61));
  EXPECT_TRUE(cluster.state.durable.nodes.contains("lost"));

  cluster.Pause(absl::Hours(1));
  cluster.Run(absl::Seconds(61));
  EXPECT_FALSE(cluster.state.durable.nodes.contains("lost"));
  EXPECT_FALSE(cluster.state.durable.nodes.contains("b"));
  EXPECT_FALSE(of_b());
  EXPECT_TRUE(cluster.state.durable.nodes.contains("kept"));
  // It may come back as any new node.
  cluster.Hello("lost", {.last_command_seq = 0});
  EXPECT_TRUE(IsSchedulable(cluster.state, "lost"));
}

}  // namespace
}  // namespace mega::core
