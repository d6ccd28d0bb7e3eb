// Checkpoints beyond checkpoint.keep are removed, whoever goes.
#include <algorithm>

#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

// Step 10 is to be removed by a, the node of rank 0, and 20 is the newest checkpoint.
JobUid PairThatKeepsOne(Cluster& cluster) {
  cluster.Hello("a", {.devices = 1});
  cluster.Hello("b", {.devices = 1});
  cluster.Submit("job", 2, [](v1::CoreSubmit& submit) {
    submit.mutable_resolved_spec()->mutable_checkpoint()->set_keep(1);
  });
  for (const int64_t step : {10, 20}) {
    for (const int64_t rank : {0, 1}) cluster.Save("job", step, rank);
  }
  EXPECT_EQ(cluster.Count("a", v1::Command::kDeleteCheckpoint), 1);
  return "job";
}

int64_t Pending(const Cluster& cluster, const NodeId& node) {
  return std::ranges::count_if(cluster.state.durable.commands, [&](const auto& entry) {
    return entry.first.first == node && entry.second.command().has_delete_checkpoint();
  });
}

// Case: the order went with the node, and the folder stayed for ever.
TEST(Removal, OfANodeThatIsLostIsGivenToAnother) {
  Cluster cluster;
  PairThatKeepsOne(cluster);
  cluster.silent = {"a"};
  cluster.Run(absl::Seconds(8));
  EXPECT_EQ(Pending(cluster, "a"), 1) << "it may come back";
  cluster.Run(absl::Seconds(72));
  EXPECT_EQ(Pending(cluster, "a"), 0);
  ASSERT_EQ(cluster.Count("b", v1::Command::kDeleteCheckpoint), 1);
  const v1::DeleteCheckpoint& order = std::ranges::find_if(cluster.sent["b"], [](const auto& sent) {
                                        return sent.has_delete_checkpoint();
                                      })->delete_checkpoint();
  EXPECT_EQ(order.step(), 10);
  EXPECT_EQ(order.directory(), "/checkpoints/10");
  EXPECT_EQ(order.job_uid(), "job");
  EXPECT_EQ(order.attempt(), 1);
  EXPECT_EQ(order.epoch(), cluster.attempt("job").epoch());
}

TEST(Removal, IsKeptWithALostNodeWhileNobodyElseIsThere) {
  Cluster cluster;
  PairThatKeepsOne(cluster);
  cluster.silent = {"a", "b"};
  cluster.Run(absl::Seconds(20));
  for (const int64_t rank : {0, 1}) cluster.Exit("job", rank, 1);
  cluster.Pause(absl::Hours(25));
  cluster.Run(absl::Seconds(61));
  EXPECT_TRUE(cluster.state.durable.nodes.contains("a"));
  EXPECT_FALSE(cluster.state.durable.nodes.contains("b"));
  EXPECT_EQ(Pending(cluster, "a"), 1);
  cluster.Hello("c");
  cluster.Run(absl::Seconds(61));
  EXPECT_EQ(cluster.Count("c", v1::Command::kDeleteCheckpoint), 1);
  EXPECT_FALSE(cluster.state.durable.nodes.contains("a"));
}

// The worker has it on its own disk then, and its next process carries it out.
TEST(Removal, ThatTheWorkerHasKeptIsNotAskedForAgain) {
  Cluster cluster;
  const JobUid uid = PairThatKeepsOne(cluster);
  const auto hello = [&](int64_t last_command_seq) {
    cluster.Hello(
        "a",
        {.devices = 1, .running = {cluster.ref(uid, 0)}, .last_command_seq = last_command_seq});
    return cluster.Count("a", v1::Command::kDeleteCheckpoint);
  };
  EXPECT_EQ(hello(0), 2) << "it did not keep it";
  EXPECT_EQ(Pending(cluster, "a"), 1);
  EXPECT_EQ(hello(-1), 2) << "it kept it, and the ack was lost";
  EXPECT_EQ(Pending(cluster, "a"), 0);
}

// Any other node may lack the mount, and to it a folder that is not there is a folder removed.
TEST(Removal, WaitsForANodeOfTheJobThatIsAwayForAMoment) {
  Cluster cluster;
  const JobUid uid = PairThatKeepsOne(cluster);
  cluster.Hello("aa", {.devices = 1});
  cluster.silent = {"a"};
  cluster.Run(absl::Seconds(30));
  ASSERT_EQ(cluster.state.durable.nodes.at("a").state(), v1::NODE_STATE_LOST);
  ASSERT_EQ(Pending(cluster, "a"), 1);
  cluster.CloseSession("b");
  cluster.Pause(absl::Seconds(31));  // nobody is dead by what a pause hid
  cluster.Feed([] {
    v1::CoreEvent event;
    event.mutable_tick();
    return event;
  }());
  EXPECT_EQ(cluster.Count("aa", v1::Command::kDeleteCheckpoint), 0);
  EXPECT_EQ(Pending(cluster, "a"), 1);
}

// The checkpoint after it turned out to be damaged, and the job comes by the step once more.
void LoseTheNewest(Cluster& cluster, const JobUid& uid) {
  for (const int code : {1, 65}) {
    for (const int64_t rank : {0, 1}) cluster.Exit(uid, rank, code);
    cluster.Run(absl::Seconds(5));
  }
  ASSERT_TRUE(cluster.job(uid).checkpoints().empty());
}

// Case: the order was dropped and nobody heard of it; the checkpoint that a user had deleted
// stayed.
TEST(Removal, NamesTheAttemptAndSoIsCarriedOutThoughTheJobMaySaveTheStepAgain) {
  Cluster cluster;
  const JobUid uid = PairThatKeepsOne(cluster);
  const int64_t epoch = cluster.attempt(uid).epoch();
  LoseTheNewest(cluster, uid);
  cluster.Hello("a", {.devices = 1, .running = {cluster.ref(uid, 0)}, .last_command_seq = 0});
  ASSERT_EQ(cluster.Count("a", v1::Command::kDeleteCheckpoint), 2);
  EXPECT_EQ(Pending(cluster, "a"), 1);
  for (const v1::Command& command : cluster.sent["a"]) {
    if (command.has_delete_checkpoint()) EXPECT_EQ(command.delete_checkpoint().epoch(), epoch);
  }
}

TEST(Removal, ThatNamesNoAttemptIsWithdrawnThenAndTheStoryTellsIt) {
  Cluster cluster;
  const JobUid uid = PairThatKeepsOne(cluster);
  for (auto& [key, pending] : cluster.state.durable.commands) {  // as release 0.1 left it
    if (!pending.command().has_delete_checkpoint()) continue;
    pending.mutable_command()->mutable_delete_checkpoint()->clear_attempt();
    pending.mutable_command()->mutable_delete_checkpoint()->clear_epoch();
  }
  LoseTheNewest(cluster, uid);
  cluster.Hello("a", {.devices = 1, .running = {cluster.ref(uid, 0)}, .last_command_seq = 0});
  EXPECT_EQ(cluster.Count("a", v1::Command::kDeleteCheckpoint), 1);
  EXPECT_EQ(Pending(cluster, "a"), 0);
  EXPECT_EQ(std::ranges::count(cluster.events(uid), "CHECKPOINT_STAYS"), 1);
}

}  // namespace
}  // namespace mega::core
