// A rank from its order to its reported end.
#include <signal.h>

#include "gmock/gmock.h"
#include "tests/worker/daemon/daemon_fixture.h"

namespace mega::daemon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(DaemonTest, ARankRunsAndItsCleanEndIsToldAfterItsLastStep) {
  coordinator_.Order(StartOrder("ready;connect;steps=20;finish=;exit=0", {0, 1}));
  ASSERT_TRUE(AwaitReady(2));
  v1::Command connect;
  connect.mutable_connect_ranks()->set_job_uid(kJob);
  connect.mutable_connect_ranks()->set_attempt(1);
  connect.mutable_connect_ranks()->set_epoch(1);
  coordinator_.Order(connect);
  ASSERT_TRUE(coordinator_.AwaitExits(2));
  // What was heard when the exits came holds every step.
  const Heard heard = coordinator_.heard();
  EXPECT_EQ(heard.steps.size(), 40u);
  for (const v1::RankExited& exited : coordinator_.Exits()) {
    EXPECT_EQ(exited.exit().code(), 0);
    EXPECT_EQ(exited.exit().signal(), 0);
    EXPECT_FALSE(exited.exit().killed_by_worker());
  }
  for (const v1::StepReport& report : heard.steps) {
    EXPECT_EQ(report.job_uid(), kJob);
    EXPECT_EQ(report.epoch(), 1);
  }
}

TEST_F(DaemonTest, AnExitCarriesCodeLastWordsAndTheEndOfStderr) {
  coordinator_.Order(StartOrder("err=the disk said no;finish=cannot read /data/x.bin;exit=64"));
  const v1::ExitStatus exit = OnlyExit();
  EXPECT_EQ(exit.code(), 64);
  EXPECT_EQ(exit.message(), "cannot read /data/x.bin");
  EXPECT_THAT(exit.stderr_tail(), HasSubstr("the disk said no"));
}

TEST_F(DaemonTest, ACrashIsToldWithItsSignalAndWhatItPrintedLast) {
  coordinator_.Order(StartOrder("err=about to fall;segv"));
  const v1::ExitStatus exit = OnlyExit();
  EXPECT_EQ(exit.signal(), SIGSEGV);
  EXPECT_FALSE(exit.killed_by_worker());
  EXPECT_THAT(exit.message(), HasSubstr("about to fall"));
}

TEST_F(DaemonTest, ADescendantThatHoldsThePipesDoesNotHideTheExit) {
  coordinator_.Order(StartOrder("grandchild;err=last;exit=3"));
  const v1::ExitStatus exit = OnlyExit();
  EXPECT_EQ(exit.code(), 3);
  EXPECT_THAT(exit.stderr_tail(), HasSubstr("last"));
}

TEST_F(DaemonTest, StopGivesGraceAndSaysWhoDidIt) {
  coordinator_.Order(StartOrder("ready;hang"));
  ASSERT_TRUE(AwaitReady());
  coordinator_.Order(StopOrder(absl::Seconds(20)));
  const v1::ExitStatus exit = OnlyExit();
  EXPECT_EQ(exit.signal(), SIGTERM);
  EXPECT_TRUE(exit.killed_by_worker());
  EXPECT_EQ(exit.message(), "stopped: the test says so");
}

TEST_F(DaemonTest, TheEngineHearsWhyItStops) {
  coordinator_.Order(StartOrder("deaf;ready;stop;exit=0"));
  ASSERT_TRUE(AwaitReady());
  coordinator_.Order(StopOrder(absl::Seconds(20)));
  EXPECT_EQ(OnlyExit().code(), 0);
}

TEST_F(DaemonTest, AnEngineThatDoesNotStopIsKilled) {
  coordinator_.Order(StartOrder("deaf;ready;hang"));
  ASSERT_TRUE(AwaitReady());
  coordinator_.Order(StopOrder(absl::Milliseconds(100)));
  EXPECT_EQ(OnlyExit().signal(), SIGKILL);
}

TEST_F(DaemonTest, ACommandThatComesTwiceIsCarriedOutOnce) {
  v1::Command order = StartOrder("ready;hang");
  order.set_seq(coordinator_.Order(order));
  ASSERT_TRUE(AwaitReady());
  const pid_t pid = Pid();
  coordinator_.SendAgain(order);
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) {
    int acks = 0;
    for (const auto& message : heard.messages) acks += message.has_command_ack();
    return acks == 2;
  }));
  EXPECT_EQ(Record().ranks_size(), 1);
  EXPECT_EQ(Pid(), pid);
}

TEST_F(DaemonTest, ACommandIsOnDiskWhenItIsAcked) {
  const int64_t seq = coordinator_.Order(StartOrder("ready;hang"));
  ASSERT_TRUE(coordinator_.Await([&](const Heard& heard) {
    for (const auto& message : heard.messages) {
      if (message.has_command_ack() && message.command_ack().seq() == seq) return true;
    }
    return false;
  }));
  EXPECT_EQ(Record().last_command_seq(), seq);
  EXPECT_EQ(Record().ranks_size(), 1);
}

TEST_F(DaemonTest, AnEngineGetsACleanWorld) {
  setenv("MEGA_TEST_SECRET", "do not pass on", 1);
  v1::Command order = StartOrder("env;exit=0");
  order.mutable_start_ranks()->mutable_plan()->set_threads_per_device(3);
  coordinator_.Order(order);
  EXPECT_EQ(OnlyExit().code(), 0);
  EXPECT_THAT(LogText(),
              AllOf(HasSubstr("OMP_NUM_THREADS=3\n"), HasSubstr("OMP_WAIT_POLICY=passive\n"),
                    HasSubstr("PATH="), HasSubstr("cwd=" + (folder_ / "state/jobs/") + kJob + "\n"),
                    Not(HasSubstr("MEGA_TEST_SECRET"))));
}

// Case: a job was cancelled while its start waited for a full disk, and ran once there was room.
TEST_F(DaemonTest, AStopWithdrawsAStartThatWaitsForTheDisk) {
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.heartbeats >= 1; }));
  const std::string record = folder_ / "state/worker.json";
  std::filesystem::rename(record, folder_ / "kept");
  std::filesystem::create_directories(record + "/in the way");  // no file can take its place
  coordinator_.Order(StartOrder("ready;hang", {0, 1}));
  const int64_t stop = coordinator_.Order(StopOrder(absl::Seconds(20)));
  ASSERT_TRUE(coordinator_.AwaitExits(2));
  for (const v1::RankExited& exited : coordinator_.Exits()) {
    EXPECT_TRUE(exited.exit().killed_by_worker());
    EXPECT_EQ(exited.exit().message(), "stopped before it was started: the test says so");
  }
  std::filesystem::remove_all(record);
  ASSERT_TRUE(coordinator_.Await([&](const Heard& heard) {
    return !heard.messages.empty() && heard.messages.back().command_ack().seq() == stop;
  }));
  EXPECT_EQ(Record().last_command_seq(), stop);
  EXPECT_EQ(Record().ranks_size(), 0);
  EXPECT_EQ(Record().exited_size(), 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state/jobs/" + std::string(kJob)));
}

// A start that comes without a lease is left to be ordered again; a stop ends it for good.
TEST_F(DaemonTest, AStopEndsAStartThatWasTurnedAwayForWantOfALease) {
  ASSERT_TRUE(LoseLease());
  const size_t hellos = coordinator_.heard().hellos.size();
  coordinator_.Order(StartOrder("ready;hang", {0}, /*attempt=*/2));
  ASSERT_TRUE(coordinator_.Await([&](const Heard& heard) { return heard.hellos.size() > hellos; }));
  EXPECT_EQ(coordinator_.heard().hellos.back().last_command_seq(), 1);  // it was not taken
  v1::Command order = StopOrder(absl::Seconds(20));
  order.mutable_stop_ranks()->set_attempt(2);
  order.mutable_stop_ranks()->set_epoch(2);
  const int64_t stop = coordinator_.Order(order);
  const auto heard_stop = [&](const Heard& heard) {
    for (const auto& message : heard.messages) {
      if (message.command_ack().seq() == stop) return true;
    }
    return heard.hellos.back().last_command_seq() == stop;
  };
  ASSERT_TRUE(coordinator_.Await(heard_stop));
  coordinator_.SetTtl(absl::Seconds(10));
  coordinator_.SetAnswering(true);
  // Were the second attempt running, the third would find its device taken.
  coordinator_.Order(StartOrder("ready;hang", {0}, /*attempt=*/3));
  ASSERT_TRUE(AwaitReady(2));
  ASSERT_EQ(Record().ranks_size(), 1);
  EXPECT_EQ(Record().ranks(0).rank().attempt(), 3);
  for (const auto& message : coordinator_.heard().messages) {
    EXPECT_NE(message.rank_ready().rank().attempt(), 2);
  }
}

TEST_F(DaemonTest, TheNextWorkerOfAFolderHasALargerIncarnationWhateverTheClockSays) {
  const int64_t first = daemon_->incarnation();
  daemon_.reset();
  v1::WorkerRecord record = Record();
  record.set_incarnation(first + absl::ToInt64Nanoseconds(absl::Hours(24)));  // the clock was wrong
  std::string text;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(record, &text).ok());
  mega::testing::WriteFile(folder_ / "state/worker.json", text);
  SetUp();
  EXPECT_EQ(daemon_->incarnation(), record.incarnation() + 1);
  EXPECT_EQ(Record().incarnation(), daemon_->incarnation());
}

TEST_F(DaemonTest, MixedNumericLibrariesAreRefused) {
  v1::Command order = StartOrder("ready;hang");
  order.mutable_start_ranks()->mutable_plan()->add_numeric_libraries("fake 2");
  coordinator_.Order(order);
  const v1::ExitStatus exit = OnlyExit();
  EXPECT_NE(exit.code() + exit.signal(), 0);
  EXPECT_THAT(exit.message(), AllOf(HasSubstr("fake 1"), HasSubstr("fake 2")));
}

TEST_F(DaemonTest, ADeviceIsGivenToOneRank) {
  coordinator_.Order(StartOrder("ready;hang", {0}));
  ASSERT_TRUE(AwaitReady());
  coordinator_.Order(StartOrder("ready;hang", {0}, /*attempt=*/2));
  const v1::ExitStatus exit = OnlyExit();
  EXPECT_EQ(exit.code(), 127);
  EXPECT_THAT(exit.message(), HasSubstr("device 0 is still taken by rank job-1/a1/r0"));
  EXPECT_EQ(coordinator_.Exits().front().rank().attempt(), 2);
}

TEST_F(DaemonTest, HostileOrdersEndAsExitsAndNothingElse) {
  v1::Command order = StartOrder("ready;hang", {0, 1, 2, -1, INT64_MAX});
  order.mutable_start_ranks()->set_job_uid("../../escape");
  order.mutable_start_ranks()->mutable_plan()->mutable_ranks(1)->set_device(INT64_MAX);
  coordinator_.Order(order);
  ASSERT_TRUE(coordinator_.AwaitExits(5));
  for (const v1::RankExited& exited : coordinator_.Exits()) EXPECT_EQ(exited.exit().code(), 127);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "escape"));
}

TEST_F(DaemonTest, ACrashLoopStaysBounded) {
  constexpr int64_t kAttempts = 20;
  for (int64_t attempt = 1; attempt <= kAttempts; ++attempt) {
    coordinator_.Order(StartOrder("err=crash;exit=1", {0}, attempt));
    ASSERT_TRUE(coordinator_.AwaitExits(static_cast<size_t>(attempt)));
  }
  int logs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder_ / "state/jobs/" + std::string(kJob))) {
    logs += entry.is_regular_file();
  }
  EXPECT_EQ(logs, 8);
  EXPECT_TRUE(Eventually([&] { return Record().ranks_size() == 0; }));
}

}  // namespace
}  // namespace mega::daemon
