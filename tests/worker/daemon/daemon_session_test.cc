// A worker and its coordinator: hellos, leases, outages.
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/proc_stat.h"
#include "gmock/gmock.h"
#include "tests/support/no_threads.h"
#include "tests/worker/daemon/daemon_fixture.h"

namespace mega::daemon {
namespace {

using ::testing::HasSubstr;

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

// Case: a job saved forty times a second, each order cost the disk several writes, and a cancel
// waited behind thousands of them.
TEST_F(DaemonTest, OrdersThatComeTogetherGoToTheDiskTogether) {
  constexpr int kOrders = 2000;
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.heartbeats >= 1; }));
  const UniqueFd watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(inotify_add_watch(watch.get(), (folder_ / "state").c_str(), IN_MOVED_TO), 0);
  v1::Command order;
  order.mutable_checkpoint_committed()->set_job_uid(kJob);
  int64_t last = 0;
  for (int i = 0; i < kOrders; ++i) last = coordinator_.Order(order);
  ASSERT_TRUE(coordinator_.Await([&](const Heard& heard) {
    return std::any_of(heard.messages.rbegin(), heard.messages.rend(),
                       [&](const auto& message) { return message.command_ack().seq() == last; });
  }));
  int writes = 0;
  alignas(inotify_event) char events[64 << 10];
  for (ssize_t got; (got = read(watch.get(), events, sizeof(events))) > 0;) {
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events + at);
      writes += event->len > 0 && std::string_view(event->name) == "worker.json";
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
  EXPECT_GT(writes, 0);
  EXPECT_LT(writes, kOrders);
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

TEST_F(DaemonTest, RanksEndWhenTheLeaseIsNotRenewed) {
  ASSERT_TRUE(ShortenLeases());
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

// Case: a start that came without a lease was left for the next session, a later command of the
// same session was acked, and the start counted as done.
TEST_F(DaemonTest, AStartThatComesWithoutALeaseIsNotLostToALaterCommand) {
  ASSERT_TRUE(LoseLease());
  const size_t hellos = coordinator_.heard().hellos.size();
  v1::Command save;
  save.mutable_save_checkpoint()->set_job_uid("another");
  coordinator_.OrderTogether({StartOrder("ready;hang", {0}, /*attempt=*/2), save});
  ASSERT_TRUE(coordinator_.Await([&](const Heard& heard) { return heard.hellos.size() > hellos; }));
  EXPECT_EQ(coordinator_.heard().hellos.back().last_command_seq(), 1);  // neither was taken
  coordinator_.SetTtl(absl::Seconds(10));
  coordinator_.SetAnswering(true);
  ASSERT_TRUE(AwaitReady(2));
  ASSERT_EQ(Record().ranks_size(), 1);
  EXPECT_EQ(Record().ranks(0).rank().attempt(), 2);
  EXPECT_TRUE(Eventually([&] { return Record().last_command_seq() == 3; }));
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

// Case: it ended with "terminate called" and no word of what to do.
TEST(DaemonStart, WithoutThreadsIsAnErrorThatSaysSo) {
  const mega::testing::TempDir folder;
  const SystemClock clock;
  Daemon::Options options;
  options.state_dir = folder / "state";
  const mega::testing::NoThreads none;
  const auto daemon = Daemon::Start(options, clock);
  ASSERT_TRUE(absl::IsResourceExhausted(daemon.status())) << daemon.status();
  EXPECT_THAT(std::string(daemon.status().message()), HasSubstr("ulimit -u"));
}

}  // namespace
}  // namespace mega::daemon
