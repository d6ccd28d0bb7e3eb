// Namespaces and what their jobs may hold together.
#include "coordinator/core/queue/quota.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::AllOf;
using testing::HasSubstr;

v1::ReplyCall Set(Cluster& cluster, const v1::Namespace& limits) {
  v1::CoreRequest request;
  *request.mutable_update_namespace()->mutable_namespace_() = limits;
  return cluster.Ask(request);
}

v1::Namespace Limits(const std::string& name, int64_t max_devices, int64_t max_jobs = 0) {
  v1::Namespace limits;
  limits.set_name(name);
  limits.set_max_devices(max_devices);
  limits.set_max_jobs(max_jobs);
  return limits;
}

int64_t Submit(Cluster& cluster, const std::string& name, const std::string& name_space,
               int64_t ranks, int64_t priority = 0) {
  return cluster.Submit(name, ranks, [&](v1::CoreSubmit& submit) {
    submit.mutable_metadata()->set_namespace_(name_space);
    submit.mutable_resolved_spec()->mutable_scheduling()->set_priority(priority);
  });
}

TEST(Quota, AJobBeyondItWaitsAndNobodyOfAnotherNamespaceForIt) {
  Cluster cluster;
  for (const char* node : {"a", "b", "c"}) cluster.Hello(node);
  Set(cluster, Limits("team", 3));
  Submit(cluster, "first", "team", 2);
  Submit(cluster, "second", "team", 2);
  Submit(cluster, "fits", "team", 1);
  Submit(cluster, "theirs", "other", 2);
  EXPECT_EQ(cluster.job("first").phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(cluster.job("second").phase(), v1::JOB_PHASE_QUEUED);
  EXPECT_THAT(cluster.job("second").reason(),
              HasSubstr("needs 2 devices and namespace 'team' holds 3 of its 3 (max_devices)"));
  EXPECT_EQ(cluster.job("theirs").phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(NamespaceView(cluster.state, "team").devices_in_use(), 3);
  cluster.Exit("first", 0, 0);
  EXPECT_EQ(cluster.job("second").phase(), v1::JOB_PHASE_QUEUED);
  cluster.Exit("first", 1, 0);
  EXPECT_EQ(cluster.job("second").phase(), v1::JOB_PHASE_STARTING);
}

// Seed 700384 of the simulator: the walk along the queue ended at it, and nobody was asked for.
TEST(Quota, AJobBeyondItBlocksNobodyDuringItsBackOffEither) {
  Cluster cluster;
  for (const char* node : {"a", "b"}) cluster.Hello(node);
  Set(cluster, Limits("team", 2));
  Submit(cluster, "failing", "team", 2);
  for (int i = 0; i < 2; ++i) {
    for (const int64_t rank : {0, 1}) cluster.Exit("failing", rank, 1);
  }
  ASSERT_EQ(cluster.job("failing").phase(), v1::JOB_PHASE_RECOVERING);
  Submit(cluster, "urgent", "team", 2, /*priority=*/10);
  ASSERT_EQ(cluster.job("urgent").phase(), v1::JOB_PHASE_STARTING);
  Submit(cluster, "theirs", "other", 2);
  EXPECT_EQ(cluster.job("theirs").phase(), v1::JOB_PHASE_STARTING);
}

// Seed 900625 of the simulator: it had once been too large for the fleet, and that was still held
// against it when its quota let it go.
TEST(Quota, AJobBeyondItIsNotPassedForAFleetOfLongAgo) {
  Cluster cluster;
  cluster.Hello("a");
  Set(cluster, Limits("team", 4));
  Submit(cluster, "large", "team", 3);
  Submit(cluster, "small", "team", 2);
  ASSERT_EQ(cluster.job("small").phase(), v1::JOB_PHASE_STARTING) << "no fleet has room for it";
  for (const char* node : {"b", "c"}) cluster.Hello(node);
  cluster.Run(absl::Minutes(3));
  Submit(cluster, "theirs", "other", 5);
  for (const int64_t rank : {0, 1}) cluster.Exit("small", rank, 0);
  EXPECT_EQ(cluster.job("large").phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(cluster.job("theirs").phase(), v1::JOB_PHASE_QUEUED);
}

TEST(Quota, RaisedLetsTheNextStartAtOnce) {
  Cluster cluster;
  cluster.Hello("a");
  Set(cluster, Limits("team", 1));
  Submit(cluster, "job", "team", 2);
  EXPECT_THAT(cluster.job("job").reason(), HasSubstr("may hold 1"));
  Set(cluster, Limits("team", 2));
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_STARTING);
}

TEST(Quota, TooManyJobsAndTooHighAPriorityAreRefusedWithBothSides) {
  Cluster cluster;
  v1::Namespace limits = Limits("team", 0, 1);
  limits.set_max_priority(3);
  limits.set_has_max_priority(true);
  EXPECT_EQ(Set(cluster, limits).namespace_().max_jobs(), 1);
  const v1::ReplyCall high = cluster.replies.at(Submit(cluster, "high", "team", 1, 4));
  EXPECT_EQ(high.reason(), "PRIORITY_TOO_HIGH");
  EXPECT_THAT(high.message(), AllOf(HasSubstr("priority is 4"), HasSubstr("at most 3")));
  EXPECT_EQ(cluster.replies.at(Submit(cluster, "one", "team", 1, 3)).code(), 0);
  const v1::ReplyCall second = cluster.replies.at(Submit(cluster, "two", "team", 1));
  EXPECT_EQ(second.reason(), "NAMESPACE_FULL");
  EXPECT_THAT(second.message(), AllOf(HasSubstr("has 1 unfinished"), HasSubstr("may have 1")));
  EXPECT_EQ(cluster.replies.at(Submit(cluster, "one", "team", 1, 3)).code(), 0);  // asked again
  cluster.Cancel("one");
  EXPECT_EQ(cluster.replies.at(Submit(cluster, "two", "team", 1)).code(), 0);
}

TEST(Namespaces, AreDeletedWhenEmptyAndOutliveTheCoordinator) {
  Cluster cluster;
  EXPECT_EQ(Set(cluster, Limits("Team", 1)).reason(), "NAMESPACE_INVALID");
  EXPECT_EQ(Set(cluster, Limits("team", -1)).reason(), "NAMESPACE_INVALID");
  EXPECT_EQ(Set(cluster, Limits("team", 4)).namespace_().name(), "team");
  cluster.Restart();
  EXPECT_EQ(NamespaceView(cluster.state, "team").max_devices(), 4);
  Submit(cluster, "job", "team", 1);
  v1::CoreRequest request;
  request.mutable_delete_namespace()->set_name("team");
  EXPECT_EQ(cluster.Ask(request).reason(), "NAMESPACE_IN_USE");
  cluster.Cancel("job");
  EXPECT_EQ(cluster.Ask(request).code(), 0);
  EXPECT_EQ(cluster.Ask(request).reason(), "NAMESPACE_NOT_FOUND");
  EXPECT_TRUE(NamespaceViews(cluster.state).empty());
}

}  // namespace
}  // namespace mega::core
