// Gangs in order: all of a job's devices or none, and nobody overtakes.
#include "base/clock.h"
#include "coordinator/core/waiting.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::HasSubstr;

TEST(Queue, OfTwoJobsThatNeedEverythingOneRunsAndOneHoldsNothing) {
  Cluster cluster;
  for (const char* node : {"a", "b", "c"}) cluster.Hello(node);
  cluster.Submit("first", 6);
  cluster.Submit("second", 6);
  EXPECT_EQ(cluster.job("first").phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(cluster.job("second").phase(), v1::JOB_PHASE_QUEUED);
  for (const auto& [node, devices] : cluster.state.index.device_owner) {
    for (const auto& [device, uid] : devices) EXPECT_EQ(uid, "first");
  }
  for (int64_t rank = 0; rank < 6; ++rank) cluster.Exit("first", rank, 0);
  EXPECT_EQ(cluster.job("second").phase(), v1::JOB_PHASE_STARTING);
}

TEST(Queue, NobodyOvertakesTheHead) {
  Cluster cluster;
  cluster.Hello("a");
  cluster.Hello("b");
  cluster.Submit("first", 1);
  cluster.Submit("large", 4);
  cluster.Submit("small", 1);
  cluster.Run(absl::Seconds(5));
  EXPECT_EQ(cluster.job("small").phase(), v1::JOB_PHASE_QUEUED);
  EXPECT_EQ(JobView(cluster.state, "large").queue_position(), 1);
  EXPECT_EQ(JobView(cluster.state, "small").queue_position(), 2);
  EXPECT_THAT(cluster.job("large").reason(), HasSubstr("not enough devices"));
  cluster.Exit("first", 0, 0);
  EXPECT_EQ(cluster.job("large").phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(cluster.job("small").phase(), v1::JOB_PHASE_QUEUED);
}

TEST(Queue, AJobThatThePresentFleetCannotHoldIsPassedAndSaysWhy) {
  Cluster cluster;
  cluster.Hello("a");
  cluster.Submit("huge", 4);
  cluster.Submit("small", 1);
  EXPECT_EQ(cluster.job("small").phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(JobView(cluster.state, "huge").queue_position(), 1);
  EXPECT_THAT(cluster.job("huge").reason(), HasSubstr("even idle: the job needs 4 devices"));
  cluster.Run(absl::Seconds(5));
  EXPECT_EQ(cluster.job("huge").phase(), v1::JOB_PHASE_QUEUED);
}

TEST(Queue, AJobForWhichEveryDeviceIsTooSmallIsPassed) {
  Cluster cluster;
  cluster.plans_itself = true;
  cluster.Hello("a");
  cluster.Submit("large model", 1);
  const auto refuse = [&] {
    v1::CoreEvent event;
    event.mutable_plan_made()->set_job_uid("large model");
    event.mutable_plan_made()->set_revision(cluster.asked.back().revision());
    event.mutable_plan_made()->set_error("it needs 40 GiB on each device, the largest has 16");
    cluster.Feed(event);
  };
  refuse();  // of the free devices
  refuse();  // of all of them
  EXPECT_THAT(cluster.job("large model").reason(), HasSubstr("40 GiB on each device"));
  cluster.Submit("small", 1);
  cluster.AnswerPlan(v1::AskPlan(cluster.asked.back()));
  EXPECT_EQ(cluster.job("small").phase(), v1::JOB_PHASE_STARTING);
}

// Case: with each change of the fleet one decision asked the planner about every job that is too
// large for it, each question with a copy of the whole fleet.
TEST(Queue, ThePlannerIsNotAskedAboutJobsThatAreTooLargeByCount) {
  Cluster cluster;
  cluster.plans_itself = true;
  cluster.Hello("a");
  for (int i = 0; i < 300; ++i) cluster.Submit("huge" + std::to_string(i), 5);
  EXPECT_TRUE(cluster.asked.empty());
  cluster.Hello("b");
  cluster.Run(absl::Seconds(5));
  EXPECT_TRUE(cluster.asked.empty());
  cluster.Submit("small", 1);
  ASSERT_EQ(cluster.asked.size(), 1u);
  EXPECT_EQ(cluster.asked[0].job_uid(), "small");
  cluster.asked.clear();
  cluster.Hello("c");  // now the first has its turn again
  cluster.Run(absl::Seconds(5));
  ASSERT_EQ(cluster.asked.size(), 1u);
  EXPECT_EQ(cluster.asked[0].job_uid(), "huge0");
}

TEST(Queue, AboutUnfitJobsThePlannerIsAskedOneByOneAndNobodyIsLeftOut) {
  Cluster cluster;
  cluster.plans_itself = true;
  cluster.Hello("a");
  const auto refuse = [&] {
    v1::CoreEvent event;
    event.mutable_plan_made()->set_job_uid(cluster.asked.back().job_uid());
    event.mutable_plan_made()->set_revision(cluster.asked.back().revision());
    event.mutable_plan_made()->set_error("it needs 40 GiB on each device");
    cluster.asked.pop_back();
    cluster.Feed(event);
  };
  for (int i = 0; i < 20; ++i) {
    cluster.Submit("large" + std::to_string(i), 1);
    while (!cluster.asked.empty()) refuse();
  }
  cluster.Run(absl::Seconds(2));
  for (int fleet = 0; fleet < 2; ++fleet) {
    cluster.Hello("b", {.incarnation = fleet + 1});
    std::set<JobUid> looked_at;
    for (int i = 0; i < 20; ++i) {
      cluster.Run(absl::Seconds(2));
      ASSERT_EQ(cluster.asked.size(), 1u) << i;
      EXPECT_NE(WaitingFor(cluster.state, "large7"), "");
      looked_at.insert(cluster.asked[0].job_uid());
      refuse();
    }
    EXPECT_EQ(looked_at.size(), 20u);
    cluster.Run(absl::Seconds(2));
    EXPECT_TRUE(cluster.asked.empty()) << "all are known to be too large for this fleet";
  }
}

TEST(Queue, APassedJobStandsInItsPlaceAgainWhenTheFleetHasGrown) {
  Cluster cluster;
  cluster.Hello("a");
  cluster.Submit("huge", 4);
  cluster.Submit("running", 1);
  cluster.Submit("waiting", 2);
  cluster.Run(absl::Seconds(5));
  cluster.Hello("b");
  cluster.Run(absl::Seconds(5));
  // It waits for the one that runs now, and nobody behind it takes the devices meanwhile.
  EXPECT_THAT(cluster.job("huge").reason(), HasSubstr("waiting: not enough devices"));
  cluster.Submit("late", 1);
  EXPECT_EQ(cluster.job("late").phase(), v1::JOB_PHASE_QUEUED);
  for (const char* name : {"running", "waiting"}) {
    if (cluster.job(name).attempts().empty()) continue;
    for (int rank = 0; rank < cluster.attempt(name).ranks_size(); ++rank) {
      cluster.Exit(name, rank, 0);
    }
  }
  EXPECT_EQ(cluster.job("huge").phase(), v1::JOB_PHASE_STARTING);
}

TEST(Queue, ABusyOrSilentNodeIsStillOfTheFleet) {
  Cluster cluster;
  cluster.Hello("a");
  cluster.Hello("b");
  cluster.silent.insert("b");
  cluster.Run(absl::Seconds(5));  // suspect, not lost
  cluster.Submit("large", 4);
  cluster.Submit("small", 1);
  EXPECT_EQ(cluster.job("small").phase(), v1::JOB_PHASE_QUEUED);
  cluster.silent.clear();
  cluster.Run(absl::Seconds(2));
  EXPECT_EQ(cluster.job("large").phase(), v1::JOB_PHASE_STARTING);
}

TEST(Queue, PassedJobsArePassedAgainAfterARestartOfTheCoordinator) {
  Cluster cluster;
  cluster.Hello("a");
  cluster.Submit("huge", 4);
  cluster.Restart();
  cluster.Submit("small", 1);
  cluster.Hello("a");
  cluster.Run(absl::Seconds(2));
  EXPECT_EQ(cluster.job("small").phase(), v1::JOB_PHASE_STARTING);
}

TEST(Queue, SaysSinceWhenAJobWaits) {
  Cluster cluster;
  cluster.Submit("job", 2);
  const absl::Time submitted = FromProto(cluster.job("job").queue_time());
  cluster.Run(absl::Seconds(5));
  cluster.Hello("a");
  EXPECT_FALSE(cluster.job("job").has_queue_time());
  cluster.Exit("job", 0, 1);
  cluster.Submit("other", 2);
  EXPECT_EQ(FromProto(cluster.job("other").queue_time()) - submitted, absl::Seconds(5));
}

TEST(Queue, OnlyOnePlanIsAskedForAtATimeAndAStaleOneIsAskedForAgain) {
  Cluster cluster;
  cluster.plans_itself = true;
  cluster.Hello("a");
  cluster.Submit("job", 2);
  ASSERT_EQ(cluster.asked.size(), 1u);
  cluster.Run(absl::Seconds(5));
  ASSERT_EQ(cluster.asked.size(), 1u);

  cluster.Hello("b");  // another cluster than the plan was asked for
  const v1::AskPlan stale = cluster.asked[0];
  cluster.AnswerPlan(stale);
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_QUEUED);
  ASSERT_EQ(cluster.asked.size(), 1u);
  EXPECT_GT(cluster.asked[0].revision(), stale.revision());
  cluster.AnswerPlan(stale);  // twice
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_QUEUED);
  cluster.AnswerPlan(v1::AskPlan(cluster.asked[0]));
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_STARTING);
}

TEST(Queue, ThePlannerIsToldOfBusyDevicesAndFullNodes) {
  Cluster cluster;
  cluster.Hello("a");
  cluster.Hello("b");
  cluster.Submit("first", 3);
  cluster.plans_itself = true;
  cluster.Submit("second", 2);
  ASSERT_EQ(cluster.asked.size(), 1u);
  std::map<NodeId, std::pair<int64_t, int64_t>> seen;  // free, busy
  for (const v1::Node& node : cluster.asked[0].nodes()) {
    seen[node.name()] = {node.devices_size(), node.devices_in_use()};
  }
  EXPECT_EQ(seen["a"], std::pair(int64_t{0}, int64_t{2}));
  EXPECT_EQ(seen["b"], std::pair(int64_t{1}, int64_t{1}));
}

TEST(Queue, APlanThatNeverCameIsAskedForAgain) {
  Cluster cluster;
  cluster.plans_itself = true;
  cluster.Hello("a");
  cluster.Submit("job", 2);
  cluster.asked.clear();
  cluster.Run(absl::Seconds(61));
  EXPECT_EQ(cluster.asked.size(), 1u);
  cluster.Restart();
  cluster.asked.clear();
  cluster.Hello("a");
  EXPECT_EQ(cluster.asked.size(), 1u);
}

TEST(Queue, APlanThatCanNeverBeFailsTheJob) {
  Cluster cluster;
  cluster.plans_itself = true;
  cluster.Hello("a");
  cluster.Submit("job", 2);
  v1::CoreEvent event;
  event.mutable_plan_made()->set_job_uid("job");
  event.mutable_plan_made()->set_revision(cluster.asked[0].revision());
  event.mutable_plan_made()->set_error("gbs 4 is smaller than mbs 8");
  event.mutable_plan_made()->set_permanent(true);
  cluster.Feed(event);
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(cluster.job("job").reason(), HasSubstr("gbs 4"));
}

TEST(Queue, APlanOnDevicesThatAreNotFreeIsNotCarriedOut) {
  Cluster cluster;
  cluster.plans_itself = true;
  cluster.Hello("a");
  cluster.Submit("job", 2);
  const auto answer = [&](std::vector<std::pair<std::string, int64_t>> placement) {
    v1::CoreEvent event;
    v1::CorePlanMade& made = *event.mutable_plan_made();
    made.set_job_uid("job");
    made.set_revision(cluster.asked.back().revision());
    made.mutable_plan()->set_world_size(std::ssize(placement));
    for (const auto& [node, device] : placement) {
      v1::RankPlacement& rank = *made.mutable_plan()->add_ranks();
      rank.set_rank(made.plan().ranks_size() - 1);
      rank.set_node(node);
      rank.set_device(device);
    }
    cluster.Feed(event);
    return cluster.job("job").reason();
  };
  EXPECT_THAT(answer({{"a", 0}, {"a", 0}}), HasSubstr("two ranks"));
  cluster.Hello("b");
  EXPECT_THAT(answer({{"a", 0}, {"a", 7}}), HasSubstr("no such device"));
  cluster.Hello("c");
  EXPECT_THAT(answer({{"a", 0}, {"nowhere", 0}}), HasSubstr("not ready"));
  cluster.Hello("d");
  EXPECT_THAT(answer({}), HasSubstr("places 0 ranks"));
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_QUEUED);
}

TEST(Queue, ManyShortJobsLeaveNothingInUse) {
  Cluster cluster;
  cluster.Hello("a");
  for (int i = 0; i < 300; ++i) {
    const std::string name = "job" + std::to_string(i);
    cluster.Submit(name, 2);
    cluster.Exit(name, 0, 0);
    cluster.Exit(name, 1, 0);
  }
  EXPECT_TRUE(cluster.state.index.device_owner.empty());
  EXPECT_TRUE(cluster.state.index.unfinished.empty());
  EXPECT_TRUE(cluster.state.durable.commands.empty());
}

}  // namespace
}  // namespace mega::core
