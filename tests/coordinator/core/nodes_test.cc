// What proves that a rank is dead, and what does not.
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::HasSubstr;

TEST(Lease, IsAnsweredAtOnceWithoutWaitingForTheDisk) {
  Cluster cluster;
  cluster.Hello("a");
  v1::WorkerMessage message;
  message.mutable_heartbeat()->set_seq(41);
  cluster.Say("a", message);
  ASSERT_EQ(cluster.effects.size(), 1u);
  EXPECT_TRUE(cluster.effects[0].immediate());
  EXPECT_EQ(cluster.effects[0].send().message().lease().heartbeat_seq(), 41);
  EXPECT_EQ(cluster.effects[0].send().message().lease().ttl().seconds(), 10);
}

TEST(Hello, ACommandNumberWithoutRoomAboveItIsRefused) {
  Cluster cluster;
  for (const int64_t seq : {std::numeric_limits<int64_t>::max(), (int64_t{1} << 52) + 1}) {
    cluster.Hello("a", {.last_command_seq = seq});
    ASSERT_FALSE(cluster.effects.empty());
    EXPECT_TRUE(cluster.effects[0].send().message().reject().fatal()) << seq;
  }
  EXPECT_FALSE(cluster.state.durable.nodes.contains("a"));
}

TEST(Hello, OfANameThatIsNoHostNameIsRefusedForEverWithTheRule) {
  Cluster cluster;
  for (const char* name : {"", "..", "../a", "a/b", "-a", "a b"}) {
    cluster.Hello(name);
    ASSERT_FALSE(cluster.effects.empty());
    const v1::Reject& reject = cluster.effects[0].send().message().reject();
    EXPECT_TRUE(reject.fatal()) << name;
    EXPECT_THAT(reject.reason(), ::testing::HasSubstr("letters, digits and -"));
  }
  EXPECT_TRUE(cluster.state.durable.nodes.empty());
  cluster.Hello("Node-1.rack2.example");
  EXPECT_EQ(cluster.state.durable.nodes.size(), 1u);
}

TEST(Lease, NothingIsGivenAwayBeforeItsEndAndTheSkew) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Hello("c", {.devices = 1});
  cluster.silent = {"b"};
  cluster.Run(absl::Seconds(10.8));
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_EQ(NodeView(cluster.state, "b").state(), v1::NODE_STATE_SUSPECT);
  EXPECT_TRUE(cluster.state.index.device_owner.contains("b"));

  cluster.Run(absl::Seconds(0.4));
  EXPECT_EQ(NodeView(cluster.state, "b").state(), v1::NODE_STATE_LOST);
  EXPECT_TRUE(cluster.attempt(uid).ranks(1).lost());
  cluster.Exit(uid, 0, 0, 9, true);  // stopped, because its peer is gone
  cluster.Run(absl::Seconds(4));     // a worker that ended ranks is left alone for a moment
  EXPECT_EQ(cluster.attempt(uid).number(), 2);
  EXPECT_EQ(cluster.attempt(uid).ranks(1).node(), "c");
}

TEST(Lease, AShortSilenceChangesNothing) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  const std::string before = cluster.attempt(uid).SerializeAsString();
  cluster.CloseSession("a");
  cluster.Run(absl::Seconds(5));
  cluster.Hello("a", {.devices = 1, .running = {cluster.ref(uid, 0)}});
  cluster.Run(absl::Seconds(60));
  EXPECT_EQ(cluster.attempt(uid).SerializeAsString(), before);
}

TEST(Lease, ALateHeartbeatFromAClosedSessionRenewsNothing) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.silent = {"b"};
  cluster.Run(absl::Seconds(12));
  v1::WorkerMessage message;
  message.mutable_heartbeat()->set_seq(1000);
  cluster.SayOn("b", 2, message);
  EXPECT_TRUE(cluster.effects.empty());
  EXPECT_EQ(cluster.state.durable.nodes.at("b").state(), v1::NODE_STATE_LOST);
}

TEST(Lease, ABlockedLoopDeclaresNobodyDead) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Pause(absl::Seconds(20));  // heartbeats were sent, and not answered
  cluster.Run(absl::Seconds(30));
  EXPECT_EQ(cluster.attempt(uid).number(), 1);
  EXPECT_EQ(cluster.job(uid).restarts(), 0);
}

TEST(Lease, AClockSetForwardOrBackDeclaresNobodyDead) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Pause(absl::Hours(1));
  cluster.Run(absl::Seconds(5));
  cluster.Pause(-absl::Hours(2));
  cluster.Run(absl::Seconds(30));
  EXPECT_EQ(cluster.attempt(uid).number(), 1);
  cluster.silent = {"b"};  // and yet silence is still noticed
  cluster.Run(absl::Seconds(12));
  EXPECT_TRUE(cluster.attempt(uid).ranks(1).lost());
}

TEST(Lease, HorizonsCountAfreshFromTheStart) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Pause(absl::Minutes(10));
  cluster.Restart();
  cluster.Run(absl::Seconds(10.5));
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RUNNING);
  cluster.Run(absl::Seconds(1));
  EXPECT_TRUE(cluster.attempt(uid).ranks(0).lost());
}

TEST(Lease, AShorterOneHoldsOnlyWhenTheLongerAreOver) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.state.options.lease = absl::Seconds(4);
  cluster.Restart();
  cluster.Run(absl::Seconds(10.8));  // workers may hold 10 s from before
  EXPECT_FALSE(cluster.attempt(uid).ranks(0).lost());
  cluster.Run(absl::Seconds(1));
  EXPECT_TRUE(cluster.attempt(uid).ranks(0).lost());
}

TEST(Restart, RanksAreAdoptedByHelloAndNothingIsRepeated) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.AckAll("a");
  cluster.AckAll("b");
  cluster.sent.clear();
  cluster.Restart();
  cluster.Run(absl::Seconds(2));
  cluster.Hello("b", {.devices = 1, .running = {cluster.ref(uid, 1)}, .last_command_seq = 2});
  cluster.Hello("a", {.devices = 1, .running = {cluster.ref(uid, 0)}, .last_command_seq = 2});
  cluster.Run(absl::Seconds(60));
  EXPECT_EQ(cluster.attempt(uid).number(), 1);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RUNNING);
  EXPECT_TRUE(cluster.sent["a"].empty());
  EXPECT_TRUE(cluster.sent["b"].empty());
}

TEST(Restart, CommandsThatWereNotAckedAreSentAgainInOrder) {
  Cluster cluster;
  cluster.Hello("a");
  cluster.Submit("job", 2);
  cluster.sent.clear();
  cluster.Restart();
  cluster.Cancel("job");
  cluster.Hello("a", {.running = {}, .last_command_seq = 0});
  // The ranks were never started, and are not started now.
  EXPECT_EQ(cluster.job("job").phase(), v1::JOB_PHASE_CANCELLED);
  EXPECT_TRUE(cluster.sent["a"].empty());

  cluster.Submit("next", 2);
  cluster.sent.clear();
  cluster.Restart();
  cluster.Hello("a", {.last_command_seq = 2});
  ASSERT_EQ(cluster.sent["a"].size(), 1u);
  EXPECT_EQ(cluster.sent["a"][0].start_ranks().job_uid(), "next");
}

const v1::CoordinatorMessage* FirstTo(const Cluster& cluster, const NodeId& node) {
  for (const v1::Effect& effect : cluster.effects) {
    if (effect.has_send() && effect.send().node() == node) return &effect.send().message();
  }
  return nullptr;
}

v1::RankRef ForeignRank() {
  v1::RankRef ref;
  ref.set_job_uid("of another cluster");
  ref.set_attempt(1);
  ref.set_epoch(1);
  return ref;
}

TEST(Hello, IsAnsweredWithTheClustersIdWhichStays) {
  Cluster cluster;
  cluster.Hello("a");
  ASSERT_NE(FirstTo(cluster, "a"), nullptr);
  EXPECT_EQ(FirstTo(cluster, "a")->lease().cluster_id(), "ours");
  cluster.Restart();
  cluster.Hello("a", {.cluster_id = "ours"});
  EXPECT_EQ(FirstTo(cluster, "a")->lease().cluster_id(), "ours");
  EXPECT_EQ(cluster.state.durable.meta.cluster_id(), "ours");
}

// Case: a coordinator that was started on an empty folder had a worker end its ranks, for "they
// have been replaced".
TEST(Hello, AWorkerThatRunsRanksOfAnotherClusterIsRefusedAndKeepsThem) {
  Cluster cluster;
  cluster.Hello("a", {.running = {ForeignRank()}, .cluster_id = "theirs"});
  ASSERT_NE(FirstTo(cluster, "a"), nullptr);
  const v1::Reject& reject = FirstTo(cluster, "a")->reject();
  EXPECT_THAT(reject.reason(), testing::AllOf(HasSubstr("theirs"), HasSubstr("ours"),
                                              HasSubstr("its own state folder")));
  EXPECT_FALSE(reject.fatal()) << "its coordinator may come back";
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 0);
  EXPECT_FALSE(cluster.state.durable.nodes.contains("a"));

  cluster.Hello("a", {.running = {ForeignRank()}, .cluster_id = ""});
  EXPECT_EQ(cluster.Count("a", v1::Command::kStopRanks), 1) << "release 0.1 names no cluster";
}

TEST(Hello, AnIdleWorkerOfAnotherClusterIsTakenWithoutItsPast) {
  Cluster cluster;
  v1::RankExited exited;
  *exited.mutable_rank() = ForeignRank();
  cluster.Hello("a", {.exited = {exited}, .last_command_seq = 500, .cluster_id = "theirs"});
  EXPECT_EQ(FirstTo(cluster, "a")->lease().cluster_id(), "ours");
  cluster.Submit("job", 2);
  ASSERT_EQ(cluster.Count("a", v1::Command::kStartRanks), 1);
  EXPECT_EQ(cluster.sent["a"].back().seq(), 1) << "its numbers are none of ours";

  // It was another's for a while, with the same process, and has forgotten our commands.
  cluster.AckAll("a");
  cluster.Hello("a", {.last_command_seq = 0, .cluster_id = "theirs"});
  EXPECT_EQ(cluster.job("job").attempts(0).state(), v1::ATTEMPT_STATE_ENDED) << "it runs nothing";
  EXPECT_EQ(cluster.attempt("job").number(), 2);
}

TEST(Hello, ANewWorkerWithoutTheRanksProvesThemDead) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Hello("b", {.devices = 1, .incarnation = 2});
  EXPECT_TRUE(cluster.attempt(uid).ranks(1).lost());
  cluster.Exit(uid, 0, 1);
  // Counts as a restart, however fast it came back; ranks stay where they were.
  EXPECT_EQ(cluster.job(uid).restarts(), 1);
  EXPECT_EQ(cluster.attempt(uid).number(), 2);
  EXPECT_EQ(cluster.attempt(uid).ranks(0).node(), "a");
  EXPECT_EQ(cluster.attempt(uid).ranks(1).node(), "b");
}

TEST(Hello, ARebootLosesAllRanksAtOnce) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.CloseSession("b");
  cluster.Hello("b", {.devices = 1, .incarnation = 2, .boot_id = "boot-2"});
  EXPECT_TRUE(cluster.attempt(uid).ranks(1).lost());
}

TEST(Hello, BringsExitsThatWereNotHeardOf) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Exit(uid, 0, 0);
  v1::RankExited exited;
  *exited.mutable_rank() = cluster.ref(uid, 1);
  cluster.Restart();
  cluster.Hello("b", {.devices = 1, .exited = {exited}});
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_SUCCEEDED);
}

TEST(Hello, ALostNodeCannotMakeAJobSucceed) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Exit(uid, 0, 0);
  cluster.Hello("b", {.devices = 1, .incarnation = 2});
  EXPECT_EQ(cluster.job(uid).restarts(), 1);
}

TEST(Hello, RanksOfAnOldAttemptAreStoppedAndKeepTheirDevices) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  const v1::RankRef old = cluster.ref(uid, 1);
  cluster.silent = {"b"};
  cluster.Run(absl::Seconds(12));
  cluster.Exit(uid, 0, 1);
  ASSERT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RECOVERING);
  cluster.sent.clear();
  cluster.silent.clear();

  cluster.Hello("b", {.devices = 1, .running = {old}, .last_command_seq = 9});
  ASSERT_EQ(cluster.Count("b", v1::Command::kStopRanks), 1);
  EXPECT_FALSE(IsSchedulable(cluster.state, "b"));
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RECOVERING);
  v1::WorkerMessage message;
  *message.mutable_rank_exited()->mutable_rank() = old;
  cluster.Say("b", message);
  EXPECT_EQ(cluster.attempt(uid).number(), 2);
}

TEST(Hello, ALateOneFromAReplacedConnectionOrProcessIsNotBelieved) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  const auto hello = [&](int64_t incarnation, int64_t heartbeat_seq) {
    v1::WorkerMessage message;
    message.mutable_hello()->mutable_node()->set_name("b");
    message.mutable_hello()->mutable_node()->set_boot_id("boot-1");
    message.mutable_hello()->mutable_node()->set_incarnation(incarnation);
    message.mutable_hello()->mutable_node()->set_state_folder_id("folder of b");
    message.mutable_hello()->mutable_node()->add_devices();
    message.mutable_hello()->set_last_command_seq(99);
    message.mutable_hello()->set_heartbeat_seq(heartbeat_seq);
    return message;
  };
  cluster.SayOn("b", 50, hello(1, 0));   // older connection of the same process
  cluster.SayOn("b", 51, hello(0, 70));  // older process
  EXPECT_FALSE(cluster.attempt(uid).ranks(1).lost());
  v1::WorkerMessage heartbeat;
  heartbeat.mutable_heartbeat()->set_seq(80);
  cluster.Say("b", heartbeat);  // the true session is still the session
  EXPECT_EQ(cluster.effects.size(), 1u);
}

TEST(Hello, ASecondMachineOfTheSameNameIsRefused) {
  Cluster cluster;
  cluster.Hello("a");
  cluster.Hello("a", {.incarnation = 2, .boot_id = "other", .state_folder = "other folder"});
  EXPECT_EQ(cluster.state.durable.nodes.at("a").boot_id(), "boot-1");
  EXPECT_TRUE(cluster.effects[0].send().message().has_reject());
}

TEST(Hello, OfAnotherStateFolderProvesNothingUntilTheNodeIsLost) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.silent = {"b"};
  cluster.CloseSession("b");
  cluster.Run(absl::Seconds(8));
  for (const char* boot : {"boot-1", "boot-2"}) {
    cluster.Hello("b", {.devices = 1, .incarnation = 2, .boot_id = boot, .state_folder = "new"});
    EXPECT_TRUE(cluster.effects[0].send().message().has_reject());
    EXPECT_FALSE(cluster.attempt(uid).ranks(1).lost());
  }
  cluster.Run(absl::Seconds(4));
  EXPECT_TRUE(cluster.attempt(uid).ranks(1).lost());
  cluster.Hello("b", {.devices = 1, .incarnation = 2, .state_folder = "new"});
  EXPECT_EQ(cluster.state.durable.nodes.at("b").state(), v1::NODE_STATE_READY);
}

TEST(Hello, AWorkerOfAnOlderReleaseIsItsOwnSuccessorOnTheSameBootOnly) {
  Cluster cluster;
  cluster.Hello("a", {.state_folder = ""});
  cluster.Hello("a", {.incarnation = 2, .boot_id = "boot-2", .state_folder = ""});
  EXPECT_TRUE(cluster.effects[0].send().message().has_reject());
  cluster.Hello("a", {.incarnation = 2, .state_folder = ""});
  EXPECT_EQ(cluster.state.durable.nodes.at("a").incarnation(), 2);
  cluster.Hello("a", {.incarnation = 3});  // upgraded
  EXPECT_EQ(cluster.state.durable.nodes.at("a").incarnation(), 3);
}

TEST(Hello, AnImpossibleOneIsRefusedForEver) {
  Cluster cluster;
  cluster.Hello(std::string(300, 'x'));
  ASSERT_FALSE(cluster.effects.empty());
  EXPECT_TRUE(cluster.effects[0].send().message().reject().fatal());
  cluster.Hello("a", {.devices = 5000});
  EXPECT_TRUE(cluster.effects[0].send().message().reject().fatal());
  EXPECT_TRUE(cluster.state.durable.nodes.empty());
}

// Case: a hello of 64 MiB became a durable node and 100,000 durable orders.
TEST(Hello, OneThatSaysTooMuchIsRefusedForEverWithAllThatIsTooMuch) {
  Cluster cluster;
  cluster.Hello("a", {.rack = std::string(600, 'r'), .running = std::vector<v1::RankRef>(9000)});
  ASSERT_FALSE(cluster.effects.empty());
  const v1::Reject& reject = cluster.effects[0].send().message().reject();
  EXPECT_TRUE(reject.fatal());
  EXPECT_THAT(reject.reason(), ::testing::HasSubstr("9000 running ranks (at most 8192)"));
  EXPECT_THAT(reject.reason(), ::testing::HasSubstr("600 bytes in a label (at most 512)"));
  EXPECT_TRUE(cluster.state.durable.nodes.empty());
  EXPECT_TRUE(cluster.state.durable.commands.empty());
}

TEST(Goodbye, EndsTheNodesRanksAndNothingIsPlacedThere) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Exit(uid, 1, 0, 15, /*by_worker=*/true);
  v1::WorkerMessage message;
  message.mutable_goodbye()->set_reason("SIGTERM");
  cluster.Exit(uid, 0, 1);
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RECOVERING) << "b is leaving";
  cluster.Say("b", message);
  cluster.CloseSession("b");
  cluster.Run(absl::Seconds(20));
  EXPECT_EQ(cluster.job(uid).phase(), v1::JOB_PHASE_RECOVERING);
  cluster.Hello("b", {.devices = 1, .incarnation = 2});
  EXPECT_EQ(cluster.attempt(uid).number(), 2);
}

TEST(Commands, NumbersRiseOverSessionsAndRestarts) {
  Cluster cluster;
  cluster.Hello("a");
  cluster.Submit("one", 1);
  cluster.AckAll("a");
  cluster.Exit("one", 0, 0);
  EXPECT_TRUE(cluster.state.durable.commands.empty());
  const int64_t last = cluster.sent["a"].back().seq();
  cluster.Restart();
  cluster.Hello("a");
  cluster.Submit("two", 1);
  EXPECT_GT(cluster.sent["a"].back().seq(), last);
}

}  // namespace
}  // namespace mega::core
