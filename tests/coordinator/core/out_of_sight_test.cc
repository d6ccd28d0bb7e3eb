// A node from which the job's checkpoints cannot be seen.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A job of one rank, saved on node a, which is lost then; b sees nothing of what a wrote.
struct OutOfSight {
  Cluster cluster;
  OutOfSight() {
    cluster.Hello("a", {.devices = 1});
    cluster.Submit("job", 1);
    cluster.Ready("job");
    cluster.StepDone("job", 10);
    cluster.Save("job", 10, 0);
    cluster.Hello("b", {.devices = 1});
    cluster.CloseSession("a");
    cluster.silent = {"a"};
    cluster.Run(absl::Minutes(40));  // its horizon
  }
  void SeesNothing() {
    cluster.Exit("job", 0, 66);
    cluster.Run(absl::Minutes(2));  // any back-off
  }
  v1::ReplyCall Ask(const std::function<void(v1::CoreRequest&)>& edit) {
    v1::CoreRequest request;
    request.set_uid("job");
    edit(request);
    return cluster.Ask(request);
  }
  const v1::Job& job() const { return cluster.job("job"); }
  NodeId node() const { return cluster.attempt("job").ranks(0).node(); }
};

// Case: a job whose node had died failed within two seconds: three attempts on the other node saw
// no checkpoint.
TEST(OutOfSight, TheJobKeepsItsCheckpointAndWaitsForANodeThatSeesIt) {
  OutOfSight lost;
  ASSERT_EQ(lost.node(), "b");
  lost.SeesNothing();
  EXPECT_EQ(lost.job().phase(), v1::JOB_PHASE_RECOVERING);
  EXPECT_EQ(lost.cluster.attempt("job").number(), 2) << "b is not tried again";
  EXPECT_EQ(lost.job().checkpoints_size(), 1);
  EXPECT_THAT(lost.cluster.events("job"), Not(Contains("CHECKPOINT_DAMAGED")));
  EXPECT_THAT(lost.job().reason(), HasSubstr("node 'b' is left out (its checkpoint of step 10 "
                                             "cannot be seen there)"));
  EXPECT_THAT(JobView(lost.cluster.state, "job").excluded_nodes(), ElementsAre("b"));

  lost.cluster.silent.clear();
  lost.cluster.Hello("a", {.devices = 1, .incarnation = 2});
  lost.cluster.Run(absl::Seconds(5));
  EXPECT_EQ(lost.job().phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(lost.node(), "a");
  EXPECT_EQ(lost.cluster.attempt("job").start_step(), 10);
}

TEST(OutOfSight, OthersAreNotKeptWaitingForIt) {
  OutOfSight lost;
  lost.SeesNothing();
  lost.cluster.Submit("other", 1);
  lost.cluster.Run(absl::Minutes(6));
  EXPECT_EQ(lost.cluster.job("other").phase(), v1::JOB_PHASE_STARTING);
}

TEST(OutOfSight, ANodeIsTriedAgainWhenAUserRestartsTheJob) {
  OutOfSight lost;
  lost.SeesNothing();
  EXPECT_EQ(lost.Ask([](v1::CoreRequest& r) { r.mutable_restart_job(); }).code(), 0);
  lost.cluster.Run(absl::Seconds(5));
  EXPECT_EQ(lost.job().phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(lost.node(), "b");
  EXPECT_EQ(lost.cluster.attempt("job").start_step(), 10);
}

TEST(OutOfSight, AfterSeveralNodesTheJobIsPausedAndNothingIsLost) {
  OutOfSight lost;
  for (const char* node : {"c", "d", "e"}) lost.cluster.Hello(node, {.devices = 1});
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(lost.job().phase(), v1::JOB_PHASE_STARTING) << i;
    lost.SeesNothing();
  }
  EXPECT_EQ(lost.job().phase(), v1::JOB_PHASE_PAUSED);
  EXPECT_THAT(lost.job().reason(), HasSubstr("3 attempts in a row did not see its checkpoint of "
                                             "step 10 in /checkpoints/10"));
  EXPECT_THAT(lost.cluster.events("job"), Contains("CHECKPOINT_OUT_OF_SIGHT"));
  EXPECT_EQ(lost.job().checkpoints_size(), 1);

  EXPECT_EQ(lost.Ask([](v1::CoreRequest& r) { r.mutable_resume_job(); }).code(), 0);
  lost.cluster.Run(absl::Seconds(5));
  EXPECT_EQ(lost.job().phase(), v1::JOB_PHASE_STARTING);
  EXPECT_THAT(JobView(lost.cluster.state, "job").excluded_nodes(), ElementsAre());
  lost.SeesNothing();
  EXPECT_EQ(lost.job().phase(), v1::JOB_PHASE_STARTING) << "its attempts are counted anew";
}

}  // namespace
}  // namespace mega::core
