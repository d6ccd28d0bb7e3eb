// The whole daemon in this process, real engines' stand-ins below it, a scripted coordinator above.
#include "worker/daemon/daemon.h"

#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <set>

#include "base/proc_stat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/daemon/scripted_coordinator.h"

namespace mega::daemon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Heard = mega::testing::ScriptedCoordinator::Heard;

constexpr char kJob[] = "job-1";

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class DaemonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto daemon = Daemon::Start(MakeOptions(), clock_);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }

  Daemon::Options MakeOptions() {
    Daemon::Options options;
    options.coordinator = coordinator_.address();
    options.node = "node-a";
    options.state_dir = folder_ / "state";
    options.devices = 2;
    options.engine = std::string(MEGA_BIN_DIR) + "/fake_engine";
    options.labels = {{"rack", "7"}};
    options.lease.heartbeat = absl::Milliseconds(100);
    options.log = {.segment_bytes = 64 << 10, .segments = 16};
    return options;
  }

  static v1::Command StartOrder(const std::string& script, std::vector<int64_t> ranks = {0},
                                int64_t attempt = 1) {
    v1::Command command;
    v1::StartRanks& start = *command.mutable_start_ranks();
    start.set_job_uid(kJob);
    start.set_job_name(script);
    start.set_attempt(attempt);
    start.set_epoch(attempt);
    for (const int64_t rank : ranks) start.add_ranks(rank);
    start.mutable_plan()->set_world_size(2);
    for (int64_t rank = 0; rank < 2; ++rank) {
      v1::RankPlacement& placement = *start.mutable_plan()->add_ranks();
      placement.set_rank(rank);
      placement.set_node("node-a");
      placement.set_device(rank);
    }
    return command;
  }

  static v1::Command StopOrder(absl::Duration grace) {
    v1::Command command;
    v1::StopRanks& stop = *command.mutable_stop_ranks();
    stop.set_job_uid(kJob);
    stop.set_attempt(1);
    stop.set_epoch(1);
    stop.set_reason("the test says so");
    *stop.mutable_grace() = ToProto(grace);
    return command;
  }

  v1::ExitStatus OnlyExit() {
    EXPECT_TRUE(coordinator_.AwaitExits(1));
    const auto exits = coordinator_.Exits();
    return exits.empty() ? v1::ExitStatus() : exits.front().exit();
  }

  bool AwaitReady(size_t count = 1) {
    return coordinator_.Await([&](const Heard& heard) {
      size_t ready = 0;
      for (const auto& message : heard.messages) ready += message.has_rank_ready();
      return ready >= count;
    });
  }

  // As the next incarnation would read it.
  v1::WorkerRecord Record() {
    v1::WorkerRecord record;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(
                    mega::testing::ReadFile(folder_ / "state/worker.json"), &record)
                    .ok());
    return record;
  }
  pid_t Pid() {
    const v1::WorkerRecord record = Record();
    return record.ranks_size() == 0 ? 0 : static_cast<pid_t>(record.ranks(0).pid());
  }
  std::string LogText(int64_t rank = 0, int64_t attempt = 1) {
    return mega::testing::ReadFile(folder_ /
                                   fmt::format("state/jobs/{}/a{}-r{}.log", kJob, attempt, rank));
  }

  mega::testing::TempDir folder_;
  SystemClock clock_;
  mega::testing::ScriptedCoordinator coordinator_;
  std::unique_ptr<Daemon> daemon_;
};

// ---- session

TEST_F(DaemonTest, SaysHelloWithWhatItIs) {
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return !heard.hellos.empty(); }));
  const v1::Hello hello = coordinator_.heard().hellos.front();
  EXPECT_EQ(hello.node().name(), "node-a");
  EXPECT_EQ(hello.node().boot_id(), BootId());
  EXPECT_EQ(hello.node().address(), daemon_->address());
  EXPECT_EQ(hello.node().metrics_address(), daemon_->metrics_address());
  EXPECT_EQ(hello.node().devices_size(), 2);
  EXPECT_GE(hello.node().devices(0).threads(), 1);
  EXPECT_EQ(hello.node().labels().at("rack"), "7");
  ASSERT_EQ(hello.node().numeric_libraries_size(), 1);
  EXPECT_EQ(hello.node().numeric_libraries(0), "fake 1");
  EXPECT_GT(hello.heartbeat_seq(), 0);
  EXPECT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.heartbeats >= 3; }));
}

TEST_F(DaemonTest, AFatalRefusalEndsIt) {
  coordinator_.Stop();
  coordinator_.RejectWith("two nodes have this name", true);
  coordinator_.Serve();
  ASSERT_TRUE(Eventually([&] { return !daemon_->fatal().ok(); }));
  EXPECT_THAT(std::string(daemon_->fatal().message()), HasSubstr("two nodes have this name"));
}

// Case: a coordinator on an empty state folder came to the port, and the worker ended its ranks.
TEST_F(DaemonTest, RanksAreKeptFromACoordinatorOfAnotherCluster) {
  const auto comes_as = [&](const std::string& cluster, size_t hellos) {
    coordinator_.Stop();
    coordinator_.SetCluster(cluster);
    const size_t before = coordinator_.heard().hellos.size();
    coordinator_.Serve();
    return coordinator_.Await(
        [&](const Heard& heard) { return heard.hellos.size() >= before + hellos; });
  };
  ASSERT_TRUE(comes_as("ours", 1));
  coordinator_.Order(StartOrder("ready;hang"));
  ASSERT_TRUE(AwaitReady());
  ASSERT_TRUE(comes_as("theirs", 3)) << "it must dial again and again";
  const v1::Hello hello = coordinator_.heard().hellos.back();
  EXPECT_EQ(hello.cluster_id(), "ours");
  EXPECT_EQ(hello.running_size(), 1);
  EXPECT_TRUE(coordinator_.Exits().empty());
  ASSERT_TRUE(comes_as("ours", 1));
  coordinator_.SendAgain(StopOrder(absl::Seconds(20)));
  EXPECT_EQ(OnlyExit().message(), "stopped: the test says so");
}

TEST_F(DaemonTest, AnIdleWorkerGoesToAnotherClusterWithNothingOfTheOneBefore) {
  coordinator_.SetCluster("ours");
  coordinator_.Stop();
  coordinator_.Serve();
  for (int i = 0; i < 3; ++i) coordinator_.Order(StopOrder(absl::Seconds(1)));
  coordinator_.Order(StartOrder("exit=0"));
  ASSERT_TRUE(coordinator_.AwaitExits(1));
  coordinator_.Stop();
  coordinator_.SetCluster("theirs");
  coordinator_.Serve();
  coordinator_.Order(StartOrder("ready;hang"));  // number 1, of the same name
  ASSERT_TRUE(AwaitReady());
  const v1::WorkerRecord record = Record();
  EXPECT_EQ(record.cluster_id(), "theirs");
  EXPECT_EQ(record.last_command_seq(), 1);
  EXPECT_EQ(record.exited_size(), 0);
  EXPECT_EQ(record.ranks_size(), 1);
}

// ---- a rank's life

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
  coordinator_.SetTtl(absl::Milliseconds(800));
  coordinator_.Order(StartOrder("ready;hang"));
  ASSERT_TRUE(AwaitReady());
  coordinator_.SetAnswering(false);
  ASSERT_TRUE(coordinator_.AwaitExits(1));  // the lease is over
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

// ---- lease and outages

TEST_F(DaemonTest, RanksEndWhenTheLeaseIsNotRenewed) {
  coordinator_.SetTtl(absl::Milliseconds(800));
  coordinator_.Order(StartOrder("outlive;ready;hang"));
  ASSERT_TRUE(AwaitReady());
  const pid_t pid = Pid();
  ASSERT_GT(pid, 0);
  coordinator_.SetAnswering(false);
  const absl::Time silent = absl::Now();
  ASSERT_TRUE(Eventually([&] { return ProcessState(pid) == 0 || ProcessState(pid) == 'Z'; }));
  // Not a moment before it had to be, and no later than the lease of the last answered heartbeat;
  // the rest is what a loaded machine takes to show it.
  EXPECT_LE(absl::Now() - silent, absl::Milliseconds(800 + 2000));
  EXPECT_GE(absl::Now() - silent, absl::Milliseconds(400));
  coordinator_.SetAnswering(true);
  const v1::ExitStatus exit = OnlyExit();
  EXPECT_EQ(exit.signal(), SIGKILL);
  EXPECT_TRUE(exit.killed_by_worker());
  EXPECT_THAT(exit.message(), HasSubstr("lease"));
}

TEST_F(DaemonTest, AnOutageShorterThanTheLeaseCostsNothing) {
  coordinator_.Order(StartOrder("ready;steps=5;file=" + (folder_ / "go") + ";stepmore=6-10;hang"));
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.steps.size() == 5; }));
  const pid_t pid = Pid();
  coordinator_.Stop();
  mega::testing::WriteFile(folder_ / "go", "");
  coordinator_.Serve();
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) {
    return heard.hellos.size() >= 2 && !heard.steps.empty() && heard.steps.back().step() == 10;
  }));
  const Heard heard = coordinator_.heard();
  EXPECT_EQ(heard.hellos.back().running_size(), 1);
  EXPECT_EQ(heard.hellos.back().node().incarnation(), heard.hellos.front().node().incarnation());
  EXPECT_EQ(Pid(), pid);
  EXPECT_TRUE(coordinator_.Exits().empty());
  // Every step at least once, and never backwards except where sending began again.
  std::set<int64_t> steps;
  for (const v1::StepReport& report : heard.steps) steps.insert(report.step());
  EXPECT_EQ(steps.size(), 10u);
}

TEST_F(DaemonTest, AnExitDuringAnOutageIsToldAfterIt) {
  coordinator_.Order(StartOrder("ready;file=" + (folder_ / "go") + ";err=nobody heard me;exit=9"));
  ASSERT_TRUE(AwaitReady());
  const pid_t pid = Pid();
  coordinator_.Stop();
  mega::testing::WriteFile(folder_ / "go", "");
  ASSERT_TRUE(Eventually([&] { return ProcessState(pid) == 0; }));
  coordinator_.Serve();
  const v1::ExitStatus exit = OnlyExit();
  EXPECT_EQ(exit.code(), 9);
  EXPECT_THAT(exit.stderr_tail(), HasSubstr("nobody heard me"));
}

TEST_F(DaemonTest, ACheckpointPartIsToldAgainUntilItsCommit) {
  coordinator_.Order(StartOrder("ready;part=10;commit=10;out=committed;hang"));
  const auto parts = [](const Heard& heard) {
    int count = 0;
    for (const auto& message : heard.messages) {
      count += message.has_checkpoint_part() && message.checkpoint_part().step() == 10 &&
               message.checkpoint_part().job_uid() == kJob &&
               message.checkpoint_part().epoch() == 1;
    }
    return count;
  };
  ASSERT_TRUE(coordinator_.Await([&](const Heard& heard) { return parts(heard) == 1; }));
  coordinator_.Stop();
  coordinator_.Serve();
  ASSERT_TRUE(coordinator_.Await([&](const Heard& heard) { return parts(heard) == 2; }));
  v1::Command commit;
  commit.mutable_checkpoint_committed()->set_job_uid(kJob);
  commit.mutable_checkpoint_committed()->set_attempt(1);
  commit.mutable_checkpoint_committed()->set_epoch(1);
  commit.mutable_checkpoint_committed()->mutable_manifest()->set_step(10);
  coordinator_.Order(commit);
  ASSERT_TRUE(Eventually([&] { return LogText() == "committed\n"; }));
  coordinator_.Stop();
  coordinator_.Serve();
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.hellos.size() == 3; }));
  coordinator_.Order(StopOrder(absl::ZeroDuration()));
  ASSERT_TRUE(coordinator_.AwaitExits(1));
  EXPECT_EQ(parts(coordinator_.heard()), 2);
}

TEST_F(DaemonTest, AWitnessSaysNoSessionOnlyAfterHalfALeaseAndTheSkew) {
  coordinator_.SetTtl(absl::Milliseconds(400));
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.heartbeats >= 1; }));
  const auto stub = v1::WitnessService::NewStub(
      grpc::CreateChannel(daemon_->address(), grpc::InsecureChannelCredentials()));
  const auto no_session = [&] {
    grpc::ClientContext context;
    v1::QueryWitnessResponse response;
    EXPECT_TRUE(stub->QueryWitness(&context, {}, &response).ok());
    EXPECT_EQ(response.node(), "node-a");
    return response.no_session();
  };
  EXPECT_FALSE(no_session());
  coordinator_.Stop();
  const absl::Time silent = absl::Now();
  ASSERT_TRUE(Eventually(no_session));
  EXPECT_GE(absl::Now() - silent, absl::Milliseconds(900));  // 200 + 1000, less one heartbeat
}

// ---- logs

TEST_F(DaemonTest, ALogIsByteExactOverFiveRotationsAndThreeReconnects) {
  // About 360 KiB in segments of 64 KiB, printed while it is read.
  coordinator_.Order(StartOrder("ready;spam=120000;file=" + (folder_ / "go1") +
                                ";spam=120000;file=" + (folder_ / "go2") + ";spam=120000;exit=0"));
  ASSERT_TRUE(AwaitReady());
  coordinator_.CutLogs(1, 3);
  std::string text;
  int requests = 0;
  bool end = false;
  while (!end && requests < 10) {
    v1::StreamLog request;
    const std::string id = fmt::format("stream-{}", ++requests);
    request.set_stream_id(id);
    request.set_job_uid(kJob);
    request.set_attempt(1);
    request.set_offset(static_cast<int64_t>(text.size()));
    request.set_follow(true);
    coordinator_.StreamLog(request);
    if (requests == 2) mega::testing::WriteFile(folder_ / "go1", "");
    if (requests == 3) mega::testing::WriteFile(folder_ / "go2", "");
    ASSERT_TRUE(coordinator_.Await(
        [&](const Heard& heard) { return heard.log_streams_ended.contains(id); }));
    const Heard heard = coordinator_.heard();
    for (const v1::LogChunk& chunk : heard.logs.at(id)) {
      ASSERT_EQ(chunk.offset(), static_cast<int64_t>(text.size()));
      ASSERT_LE(chunk.data().size(), 256u << 10);
      text += chunk.data();
      end = chunk.end();
    }
  }
  EXPECT_TRUE(end);
  EXPECT_GE(requests, 4);
  std::string expected;
  for (int part = 0; part < 3; ++part) {
    int64_t written = 0;
    for (int64_t number = 0; written < 120000; ++number) {
      const std::string line = fmt::format("line {:012} {}\n", number,
                                           std::string(static_cast<size_t>(number % 97), '.'));
      written += std::ssize(line);
      expected += line;
    }
  }
  EXPECT_EQ(text.size(), expected.size());
  EXPECT_TRUE(text == expected);
  EXPECT_GT(expected.size(), 5u << 16);
}

TEST_F(DaemonTest, AnEndedRanksLogCanStillBeRead) {
  coordinator_.Order(StartOrder("out=one;out=two;exit=0"));
  ASSERT_TRUE(coordinator_.AwaitExits(1));
  v1::StreamLog request;
  request.set_stream_id("tail");
  request.set_job_uid(kJob);
  request.set_attempt(1);
  request.set_tail_bytes(4);
  request.set_follow(true);
  coordinator_.StreamLog(request);
  request.set_stream_id("unknown");
  request.set_rank(7);
  coordinator_.StreamLog(request);
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) {
    return heard.log_streams_ended.contains("tail") && heard.log_streams_ended.contains("unknown");
  }));
  const Heard heard = coordinator_.heard();
  EXPECT_EQ(heard.logs.at("tail").front().data(), "two\n");
  EXPECT_EQ(heard.logs.at("tail").front().offset(), 4);
  EXPECT_TRUE(heard.logs.at("tail").back().end());
  EXPECT_TRUE(heard.logs.at("unknown").back().end());
}

TEST_F(DaemonTest, ALogThatCannotBeOpenedSaysWhy) {
  const std::string log = folder_ / fmt::format("state/jobs/{}/a1-r0.log", kJob);
  std::filesystem::create_directories(log);  // a folder in its place
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return !heard.hellos.empty(); }));
  v1::StreamLog request;
  request.set_stream_id("broken");
  request.set_job_uid(kJob);
  request.set_attempt(1);
  coordinator_.StreamLog(request);
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.logs.contains("broken"); }));
  const v1::LogChunk last = coordinator_.heard().logs.at("broken").back();
  EXPECT_THAT(last.error(), HasSubstr(log));
  EXPECT_FALSE(last.end());
}

TEST_F(DaemonTest, ACancelledLogStreamEnds) {
  coordinator_.Order(StartOrder("ready;out=hello;hang"));
  ASSERT_TRUE(AwaitReady());
  v1::StreamLog request;
  request.set_stream_id("follow");
  request.set_job_uid(kJob);
  request.set_attempt(1);
  request.set_follow(true);
  coordinator_.StreamLog(request);
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.logs.contains("follow"); }));
  request.set_cancel(true);
  coordinator_.StreamLog(request);
  EXPECT_TRUE(coordinator_.Await(
      [](const Heard& heard) { return heard.log_streams_ended.contains("follow"); }));
}

// Case: beyond 128 streams the worker said nothing, and the reader waited for ever.
TEST_F(DaemonTest, TooManyLogStreamsAreRefusedOutLoud) {
  coordinator_.Order(StartOrder("ready;out=hello;hang"));
  ASSERT_TRUE(AwaitReady());
  ASSERT_TRUE(Eventually([&] { return LogText() == "hello\n"; }));
  v1::StreamLog request;
  request.set_job_uid(kJob);
  request.set_attempt(1);
  request.set_follow(true);
  for (int i = 0; i < 128 + 200; ++i) {
    request.set_stream_id(fmt::format("stream-{}", i));
    coordinator_.StreamLog(request);
  }
  ASSERT_TRUE(
      coordinator_.Await([](const Heard& heard) { return heard.logs.size() == 128 + 200; }));
  int refused = 0;
  const Heard heard = coordinator_.heard();
  for (const auto& [id, chunks] : heard.logs) {
    if (chunks.front().error().empty()) {
      EXPECT_EQ(chunks.front().data(), "hello\n") << id;
    } else {
      EXPECT_THAT(chunks.front().error(), HasSubstr("too many log streams (128)"));
      ++refused;
    }
  }
  EXPECT_EQ(refused, 200);
  // Room comes back with the end of one.
  request.set_stream_id("stream-0");
  request.set_cancel(true);
  coordinator_.StreamLog(request);
  ASSERT_TRUE(coordinator_.Await(
      [](const Heard& heard) { return heard.log_streams_ended.contains("stream-0"); }));
  request.set_cancel(false);
  EXPECT_TRUE(Eventually([&, i = 0]() mutable {
    const std::string id = fmt::format("later-{}", ++i);
    request.set_stream_id(id);
    coordinator_.StreamLog(request);
    return coordinator_.Await([&](const Heard& heard) { return heard.logs.contains(id); }) &&
           coordinator_.heard().logs.at(id).front().error().empty();
  }));
}

// ---- metrics

std::string Scrape(const std::string& address) {
  FILE* pipe = popen(("curl -sf http://" + address + "/metrics").c_str(), "r");
  std::string text;
  char buffer[4096];
  while (size_t got = fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, got);
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

TEST_F(DaemonTest, MetricsShowARankWhileItRunsAndPromtoolAgrees) {
  coordinator_.Order(StartOrder("ready;steps=7;hang"));
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.steps.size() == 7; }));
  const std::string text = Scrape(daemon_->metrics_address());
  EXPECT_THAT(
      text,
      AllOf(
          HasSubstr("mega_rank_step{rank=\"0\",training_job=\"ready;steps=7;hang\"} 7"),
          HasSubstr("mega_rank_step_seconds{rank=\"0\",training_job=\"ready;steps=7;hang\"} 0.25"),
          HasSubstr("mega_worker_info{node=\"node-a\""), HasSubstr("mega_node_cpu_seconds_total"),
          HasSubstr("mega_session_connected 1")));
  EXPECT_TRUE(Eventually([&] {
    return Scrape(daemon_->metrics_address()).find("mega_worker_devices{state=\"in_use\"} 1") !=
           std::string::npos;
  }));
  if (std::filesystem::exists("/usr/bin/promtool")) {
    mega::testing::WriteFile(folder_ / "metrics", text);
    EXPECT_EQ(system(("promtool check metrics < " + (folder_ / "metrics")).c_str()), 0);
  }
  coordinator_.Order(StopOrder(absl::ZeroDuration()));
  ASSERT_TRUE(coordinator_.AwaitExits(1));
  const std::string after = Scrape(daemon_->metrics_address());
  EXPECT_THAT(after, AllOf(Not(HasSubstr("mega_rank_step{")), Not(HasSubstr("mega_rank_info{")),
                           HasSubstr("mega_rank_exits_total{cause=\"stopped\"} 1")));
}

}  // namespace
}  // namespace mega::daemon
