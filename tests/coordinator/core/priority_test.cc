// Who comes first, and who gives way to whom.
#include "base/clock.h"
#include "coordinator/core/queue/victims.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;

void Submit(
    Cluster& cluster, const std::string& name, int64_t ranks, int64_t priority,
    const std::function<void(v1::Scheduling&)>& edit = [](v1::Scheduling&) {}) {
  cluster.Submit(name, ranks, [&](v1::CoreSubmit& submit) {
    v1::Scheduling& scheduling = *submit.mutable_resolved_spec()->mutable_scheduling();
    scheduling.set_priority(priority);
    edit(scheduling);
  });
  cluster.Run(absl::Seconds(1));  // a second older than the next
}

void MakeRun(Cluster& cluster, const JobUid& uid) {
  cluster.Ready(uid);
  cluster.StepDone(uid, 1);
  ASSERT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RUNNING);
}

void End(Cluster& cluster, const JobUid& uid, bool by_worker = false) {
  for (int rank = 0; rank < cluster.attempt(uid).ranks_size(); ++rank) {
    cluster.Exit(uid, rank, 0, by_worker ? 15 : 0, by_worker);
  }
}

TEST(Priority, HigherFirstThenTheOlder) {
  Cluster cluster;
  Submit(cluster, "low", 2, -1);
  Submit(cluster, "first", 2, 0);
  Submit(cluster, "second", 2, 0);
  Submit(cluster, "high", 2, 7);
  std::vector<std::string> started;
  cluster.Hello("a");
  for (int i = 0; i < 4; ++i) {
    for (const auto& [uid, job] : cluster.state.durable.jobs) {
      if (job.phase() == v1::JOB_PHASE_STARTING) started.push_back(uid);
    }
    End(cluster, started.back());
  }
  EXPECT_THAT(started, ElementsAre("high", "first", "second", "low"));
}

TEST(Priority, ARecoveringJobComesBeforeNewOnesOfItsPriorityOnly) {
  Cluster cluster;
  cluster.Hello("a");
  Submit(cluster, "job", 2, 0);
  MakeRun(cluster, "job");
  cluster.state.options.plan_timeout = absl::Hours(1);
  cluster.plans_itself = true;
  Submit(cluster, "equal", 2, 0);
  cluster.Exit("job", 0, 1);
  cluster.Exit("job", 1, 1);
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(cluster.job("equal").phase(), v1::JOB_PHASE_QUEUED);
}

TEST(Preemption, TheVictimSavesThenYieldsAndQueuesAgainWithItsAge) {
  Cluster cluster;
  cluster.Hello("a");
  Submit(cluster, "low", 2, 0);
  MakeRun(cluster, "low");
  Submit(cluster, "behind", 2, 0);
  Submit(cluster, "high", 2, 5);
  EXPECT_EQ(cluster.Count("a", v1::Command::kSaveCheckpoint), 1);
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 0);
  EXPECT_THAT(cluster.job("high").reason(), HasSubstr("save and give way: 'low'"));
  EXPECT_THAT(cluster.job("low").reason(), HasSubstr("preempted by job 'high'"));
  cluster.Run(absl::Seconds(5));
  EXPECT_EQ(cluster.Count("a", v1::Command::kSaveCheckpoint), 1);  // asked once

  cluster.StepDone("low", 2);
  cluster.Save("low", 2, 0);
  cluster.Save("low", 2, 1);
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 1);
  End(cluster, "low", /*by_worker=*/true);
  cluster.Run(absl::Seconds(5));
  EXPECT_EQ(cluster.job("high").phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(cluster.job("low").phase(), v1::JOB_PHASE_RECOVERING);
  EXPECT_EQ(cluster.job("low").restarts(), 0);
  EXPECT_EQ(JobView(cluster.state, "low").queue_position(), 1);
  End(cluster, "high");
  cluster.Run(absl::Seconds(1));
  EXPECT_EQ(cluster.job("low").phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(cluster.attempt("low").start_step(), 2);
}

TEST(Preemption, ASaveThatDoesNotComeIsWaitedForNoLongerThanTheGrace) {
  Cluster cluster;
  cluster.Hello("a");
  Submit(cluster, "low", 2, 0, [](v1::Scheduling& scheduling) {
    *scheduling.mutable_preempt_grace() = ToProto(absl::Seconds(20));
  });
  MakeRun(cluster, "low");
  Submit(cluster, "high", 2, 5);
  cluster.Run(absl::Seconds(18));
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 0);
  cluster.Run(absl::Seconds(3));
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 1);
}

TEST(Preemption, NeverOfEqualPriorityNorOfOneThatIsNotPreemptible) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 2});
  Submit(cluster, "equal", 1, 5);
  Submit(cluster, "kept", 1, 0, [](v1::Scheduling& s) { s.set_preemptible(false); });
  MakeRun(cluster, "equal");
  MakeRun(cluster, "kept");
  Submit(cluster, "high", 1, 5);
  cluster.Run(absl::Seconds(5));
  EXPECT_EQ(cluster.Count("a", v1::Command::kSaveCheckpoint), 0);
  EXPECT_EQ(cluster.job("high").phase(), v1::JOB_PHASE_QUEUED);
}

TEST(Preemption, NeverWhenItWouldNotHelp) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 2});
  Submit(cluster, "low", 1, 0);
  Submit(cluster, "kept", 1, 9);
  MakeRun(cluster, "low");
  MakeRun(cluster, "kept");
  Submit(cluster, "high", 2, 5);
  cluster.Run(absl::Seconds(5));
  EXPECT_EQ(cluster.Count("a", v1::Command::kSaveCheckpoint), 0);
  EXPECT_FALSE(cluster.attempt("low").yields());
}

TEST(Preemption, ThePlannerHasTheLastWord) {
  Cluster cluster;
  cluster.Hello("a");
  Submit(cluster, "low", 2, 0);
  MakeRun(cluster, "low");
  cluster.plans_itself = true;
  Submit(cluster, "high", 2, 5);
  ASSERT_EQ(cluster.asked.size(), 1u);  // if the victims' devices were free
  EXPECT_EQ(cluster.asked[0].nodes(0).devices_size(), 2);
  v1::CoreEvent event;
  event.mutable_plan_made()->set_job_uid("high");
  event.mutable_plan_made()->set_revision(cluster.asked[0].revision());
  event.mutable_plan_made()->set_error("the devices are too small");
  cluster.Feed(event);
  EXPECT_FALSE(cluster.attempt("low").yields());
}

TEST(Preemption, AJobThatIsSavingAlreadyIsEnough) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 2});
  Submit(cluster, "one", 1, 0);
  Submit(cluster, "two", 1, 0);
  MakeRun(cluster, "one");
  MakeRun(cluster, "two");
  v1::CoreRequest pause;
  pause.set_uid("one");
  pause.mutable_pause_job();
  cluster.Ask(pause);
  Submit(cluster, "high", 1, 5);
  cluster.Run(absl::Seconds(5));
  EXPECT_FALSE(cluster.attempt("two").yields());
}

TEST(Preemption, OneThatWillNotEndIsNotWaitedForForever) {
  Cluster cluster;
  cluster.Hello("a", {.devices = 2});
  Submit(cluster, "stuck", 1, 0);
  Submit(cluster, "other", 1, 1);
  MakeRun(cluster, "stuck");
  MakeRun(cluster, "other");
  Submit(cluster, "high", 1, 5);
  EXPECT_TRUE(cluster.attempt("stuck").yields());
  cluster.Run(absl::Minutes(4));  // it is told to end, and does not
  EXPECT_TRUE(cluster.attempt("other").yields());
}

TEST(Preemption, NotForAJobThatItsQuotaHolds) {
  Cluster cluster;
  cluster.Hello("a");
  Submit(cluster, "low", 2, 0);
  MakeRun(cluster, "low");
  v1::CoreRequest limit;
  limit.mutable_update_namespace()->mutable_namespace_()->set_name("default");
  limit.mutable_update_namespace()->mutable_namespace_()->set_max_devices(2);
  cluster.Ask(limit);
  Submit(cluster, "high", 2, 5);
  EXPECT_FALSE(cluster.attempt("low").yields());
}

Holder Of(const std::string& uid, int64_t priority, int age, std::map<NodeId, int64_t> devices) {
  return {.uid = uid,
          .priority = priority,
          .create_time = absl::FromUnixSeconds(1000 - age),
          .devices = std::move(devices)};
}

TEST(Victims, LowestPriorityThenYoungest) {
  const std::vector<Holder> holders = {Of("old", 0, 9, {{"a", 1}}), Of("young", 0, 1, {{"a", 1}}),
                                       Of("high", 3, 0, {{"a", 1}})};
  EXPECT_THAT(ChooseVictims({{"a", 0}}, holders, 5, {.devices = 1}),
              Optional(ElementsAre("young")));
  EXPECT_THAT(ChooseVictims({{"a", 0}}, holders, 5, {.devices = 2}),
              Optional(ElementsAre("young", "old")));
  EXPECT_EQ(ChooseVictims({{"a", 0}}, holders, 3, {.devices = 3}), std::nullopt);
}

TEST(Victims, NoneThatIsNotNeeded) {
  // The youngest is small; with the larger one it is not needed.
  const std::vector<Holder> holders = {Of("large", 0, 5, {{"a", 4}}), Of("small", 0, 1, {{"b", 1}}),
                                       Of("tiny", 0, 2, {{"a", 1}})};
  EXPECT_THAT(ChooseVictims({{"a", 0}, {"b", 0}}, holders, 1, {.devices = 4, .nodes = 1}),
              Optional(ElementsAre("large")));
  EXPECT_THAT(ChooseVictims({{"a", 1}, {"b", 0}}, holders, 1, {.devices = 2, .nodes = 1}),
              Optional(ElementsAre("tiny")));
}

TEST(Victims, DevicesElsewhereDoNotHelp) {
  const std::vector<Holder> holders = {Of("on cordoned", 0, 5, {{"x", 4}})};
  EXPECT_EQ(ChooseVictims({{"a", 0}}, holders, 1, {.devices = 1}), std::nullopt);
}

TEST(TimeLimit, SavesThenEndsWithAReason) {
  Cluster cluster;
  cluster.Hello("a");
  Submit(cluster, "job", 2, 0, [](v1::Scheduling& scheduling) {
    *scheduling.mutable_time_limit() = ToProto(absl::Minutes(10));
  });
  MakeRun(cluster, "job");
  cluster.Run(absl::Minutes(9));
  EXPECT_FALSE(cluster.attempt("job").yields());
  cluster.Run(absl::Minutes(1));
  EXPECT_EQ(cluster.Count("a", v1::Command::kSaveCheckpoint), 1);
  cluster.StepDone("job", 4);
  cluster.Save("job", 4, 0);
  cluster.Save("job", 4, 1);
  End(cluster, "job", /*by_worker=*/true);
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_FAILED);
  EXPECT_THAT(cluster.job("job").reason(),
              testing::AllOf(HasSubstr("scheduling.time_limit is 10m"), HasSubstr("step 4")));
}

TEST(TimeLimit, WaitingDoesNotCount) {
  Cluster cluster;
  Submit(cluster, "job", 2, 0, [](v1::Scheduling& scheduling) {
    *scheduling.mutable_time_limit() = ToProto(absl::Minutes(10));
  });
  cluster.Run(absl::Hours(1));
  cluster.Hello("a");
  MakeRun(cluster, "job");
  cluster.Run(absl::Minutes(9));
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_RUNNING);
}

}  // namespace
}  // namespace mega::core
