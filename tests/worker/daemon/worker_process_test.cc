// mega-worker as a real process: what it leaves behind, and what it says to people.
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>

#include "base/listen_address.h"
#include "base/proc_stat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/metrics/http_client.h"
#include "tests/worker/daemon/daemon_fixture.h"
#include "worker/daemon/process.h"
#include "worker/daemon/trainer_service.h"

namespace mega::daemon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

bool Alive(pid_t pid) {
  const char state = ProcessState(pid);
  return state != 0 && state != 'Z';
}

class WorkerProcess : public ::testing::Test {
 protected:
  // A worker that was killed leaves its socket folder to the next one.
  void TearDown() override {
    for (const auto& [pid, start_time_ticks] : stopped_) {  // a test that failed half-way
      if (StartTimeTicks(pid) == start_time_ticks) kill(pid, SIGKILL);
    }
    if (std::filesystem::exists(folder_ / "state/worker.json")) {
      RemoveSocketFolder(Record().socket_directory());
    }
  }

  std::unique_ptr<Process> Spawn(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), std::string(MEGA_BIN_DIR) + "/mega-worker");
    auto process = Process::Fork(
        {.argv = std::move(arguments), .environment = {"PATH=/usr/bin:/bin"}, .directory = "/"});
    EXPECT_TRUE(process.ok() && (*process)->Release().ok());
    return *std::move(process);
  }

  std::vector<std::string> Usual() {
    return {"--coordinator", coordinator_.address(),
            "--state-dir",   folder_ / "state",
            "--devices",     "2",
            "--node",        "node-a",
            "--engine",      std::string(MEGA_BIN_DIR) + "/fake_engine",
            "--port-file",   folder_ / "port"};
  }

  // Its exit, or nothing after 20 s.
  static std::optional<ProcessExit> AwaitExit(Process& process) {
    std::optional<ProcessExit> exit;
    EventuallyWithin(absl::Seconds(20), [&] {
      exit = process.Reap();
      return exit.has_value();
    });
    return exit;
  }

  static std::string Output(Process& process) {
    std::string text;
    const UniqueFd err = process.TakeStderr();
    char buffer[4096];
    while (true) {
      const ssize_t got = read(err.get(), buffer, sizeof(buffer));
      if (got <= 0) return text;
      text.append(buffer, static_cast<size_t>(got));
    }
  }

  // What it says on standard error, until that holds `end`. Goes on where it stopped.
  static std::string ReadUntil(int fd, const std::string& end) {
    std::string text;
    char byte;
    while (text.find(end) == std::string::npos) {
      pollfd waiting = {fd, POLLIN, 0};
      if (poll(&waiting, 1, 20'000) <= 0 || read(fd, &byte, 1) != 1) break;
      text += byte;
    }
    return text;
  }

  // Ends with a usage or start error: its code and what it said.
  std::pair<int, std::string> Fails(std::vector<std::string> arguments) {
    const auto process = Spawn(std::move(arguments));
    const std::string text = Output(*process);
    const auto exit = AwaitExit(*process);
    return {exit ? exit->code : -1, text};
  }

  void StartRanks(const std::string& script, int64_t attempt = 1) {
    v1::Command command;
    v1::StartRanks& start = *command.mutable_start_ranks();
    start.set_job_uid("job-1");
    start.set_job_name(script);
    start.set_attempt(attempt);
    start.set_epoch(attempt);
    for (int64_t rank = 0; rank < 2; ++rank) {
      start.add_ranks(rank);
      start.mutable_plan()->add_ranks()->set_device(rank);
    }
    coordinator_.Order(command);
  }

  bool AwaitReady(size_t count) { return coordinator_.AwaitReady(count); }

  v1::WorkerRecord Record() { return ReadRecord(folder_ / "state"); }
  std::vector<pid_t> Engines() {
    std::vector<pid_t> pids;
    const v1::WorkerRecord record = Record();
    for (const auto& rank : record.ranks()) pids.push_back(static_cast<pid_t>(rank.pid()));
    return pids;
  }

  mega::testing::TempDir folder_;
  std::map<pid_t, int64_t> stopped_;
  mega::testing::ScriptedCoordinator coordinator_;
};

TEST_F(WorkerProcess, KilledItLeavesNoEngineForLongerThanASecond) {
  auto worker = Spawn(Usual());
  StartRanks("ready;hang");
  ASSERT_TRUE(AwaitReady(2));
  const std::vector<pid_t> engines = Engines();
  ASSERT_EQ(engines.size(), 2u);
  kill(worker->pid(), SIGKILL);
  EXPECT_TRUE(
      EventuallyWithin(absl::Seconds(1), [&] { return !Alive(engines[0]) && !Alive(engines[1]); }));
}

TEST_F(WorkerProcess, TheNextIncarnationEndsWhatIsLeftBeforeItSaysHello) {
  auto worker = Spawn(Usual());
  StartRanks("ready;hang");
  ASSERT_TRUE(AwaitReady(2));
  const std::vector<pid_t> engines = Engines();
  const std::string sockets = Record().socket_directory();
  for (const pid_t pid : engines) {
    stopped_[pid] = StartTimeTicks(pid);
    kill(pid, SIGSTOP);  // cannot leave by itself
    ASSERT_TRUE(EventuallyWithin(absl::Seconds(20), [&] { return ProcessState(pid) == 'T'; }));
  }
  kill(worker->pid(), SIGKILL);
  ASSERT_TRUE(AwaitExit(*worker));
  for (const pid_t pid : engines) ASSERT_TRUE(Alive(pid));

  worker = Spawn(Usual());
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.hellos.size() == 2; }));
  for (const pid_t pid : engines) EXPECT_FALSE(Alive(pid));
  const v1::Hello hello = coordinator_.heard().hellos.back();
  EXPECT_EQ(hello.running_size(), 0);
  EXPECT_EQ(hello.last_command_seq(), 1);
  ASSERT_EQ(hello.exited_size(), 2);
  EXPECT_EQ(hello.exited(0).exit().signal(), SIGKILL);
  EXPECT_TRUE(hello.exited(0).exit().killed_by_worker());
  EXPECT_FALSE(std::filesystem::exists(sockets));
  // The same devices serve again.
  StartRanks("ready;exit=0", 2);
  EXPECT_TRUE(coordinator_.AwaitExits(4));
}

TEST_F(WorkerProcess, ItNeverKillsAProcessThatOnlyHasTheSameNumber) {
  const auto bystander =
      Process::Fork({.argv = {"/bin/sleep", "600"}, .environment = {}, .directory = "/"});
  ASSERT_TRUE(bystander.ok() && (*bystander)->Release().ok());
  std::filesystem::create_directories(folder_ / "state");
  mega::testing::WriteFile(
      folder_ / "state/worker.json",
      fmt::format(R"({{"boot_id": "{}", "ranks": [{{"rank": {{"job_uid": "job-1"}}, "pid": {},
                       "start_time_ticks": {}}}]}})",
                  mega::testing::ReadFile("/proc/sys/kernel/random/boot_id").substr(0, 36),
                  (*bystander)->pid(), (*bystander)->start_time_ticks() - 1));
  const auto worker = Spawn(Usual());
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return !heard.hellos.empty(); }));
  EXPECT_EQ(coordinator_.heard().hellos.front().exited_size(), 1);
  EXPECT_TRUE(Alive((*bystander)->pid()));
}

TEST_F(WorkerProcess, ToldToLeaveItEndsItsRanksSaysGoodbyeAndExitsZero) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const auto worker = Spawn(Usual());
    const size_t sessions = coordinator_.heard().hellos.size();
    ASSERT_TRUE(
        coordinator_.Await([&](const Heard& heard) { return heard.hellos.size() > sessions; }));
    const size_t before = coordinator_.heard().messages.size();
    StartRanks("ready;hang", signal);
    ASSERT_TRUE(coordinator_.Await([&](const Heard& heard) {
      size_t ready = 0;
      for (size_t i = before; i < heard.messages.size(); ++i) {
        ready += heard.messages[i].has_rank_ready();
      }
      return ready == 2;
    }));
    const std::string sockets = Record().socket_directory();
    kill(worker->pid(), signal);
    const auto exit = AwaitExit(*worker);
    ASSERT_TRUE(exit.has_value());
    EXPECT_EQ(exit->code, 0);
    const Heard heard = coordinator_.heard();
    EXPECT_TRUE(heard.messages.back().has_goodbye());
    EXPECT_EQ(std::count_if(heard.messages.begin() + before, heard.messages.end(),
                            [](const auto& message) { return message.has_rank_exited(); }),
              2);
    EXPECT_TRUE(Engines().empty());
    EXPECT_FALSE(std::filesystem::exists(sockets));
  }
}

TEST_F(WorkerProcess, LeavesInTimeAlthoughNobodyTakesItsReports) {
  const auto worker = Spawn(Usual());
  StartRanks("ready;file=" + (folder_ / "go") + ";steps=5;out=reported;hang");
  ASSERT_TRUE(AwaitReady(2));
  coordinator_.Stop();
  mega::testing::WriteFile(folder_ / "go", "");
  const std::string log = folder_ / "state/jobs/job-1/a1-r0.log";
  ASSERT_TRUE(EventuallyWithin(absl::Seconds(20),
                               [&] { return mega::testing::ReadFile(log) == "reported\n"; }));
  kill(worker->pid(), SIGTERM);
  const absl::Time told = absl::Now();
  const auto exit = AwaitExit(*worker);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 0);
  EXPECT_LT(absl::Now() - told, absl::Seconds(5));
}

TEST_F(WorkerProcess, LeavesWhenStandardInputEndsIfAsked) {
  auto arguments = Usual();
  arguments.push_back("--exit-on-stdin-eof");
  const auto worker = Spawn(arguments);  // its stdin is /dev/null
  const auto exit = AwaitExit(*worker);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 0);
}

TEST_F(WorkerProcess, AnAddressBeyondLoopbackNeedsInsecure) {
  for (const char* flag : {"--listen", "--metrics-listen", "--coordinator"}) {
    auto arguments = Usual();
    if (flag == std::string("--coordinator"))
      arguments.erase(arguments.begin(), arguments.begin() + 2);
    arguments.insert(arguments.end(), {flag, "10.1.2.3:7070"});
    const auto [code, text] = Fails(arguments);
    EXPECT_EQ(code, 2);
    EXPECT_THAT(text, AllOf(HasSubstr(flag), HasSubstr("10.1.2.3:7070"), HasSubstr("--insecure")));
  }
}

TEST_F(WorkerProcess, ManyConnectionsTakeNoDescriptorsFromTheRest) {
  const auto worker = Spawn(Usual());
  const UniqueFd err = worker->TakeStderr();
  EXPECT_THAT(ReadUntil(err.get(), "in session with the coordinator"), HasSubstr("in session"));
  rlimit limits{};
  ASSERT_EQ(prlimit(worker->pid(), RLIMIT_NOFILE, nullptr, &limits), 0);
  EXPECT_EQ(limits.rlim_cur, limits.rlim_max);
  limits.rlim_cur = 256;
  ASSERT_EQ(prlimit(worker->pid(), RLIMIT_NOFILE, &limits, nullptr), 0);
  const auto address =
      ParseListenAddress("hello", coordinator_.heard().hellos.front().node().address());
  ASSERT_TRUE(address.ok());
  std::vector<std::unique_ptr<mega::testing::HttpClient>> silent;
  for (int i = 0; i < 400; ++i) {
    silent.push_back(std::make_unique<mega::testing::HttpClient>(address->port));
  }
  EXPECT_THAT(ReadUntil(err.get(), "connections are refused"), HasSubstr("refused"));
  StartRanks("ready;hang");
  EXPECT_TRUE(AwaitReady(2));
}

TEST_F(WorkerProcess, WhatIsAllowedForMetricsIsForNothingElse) {
  for (const char* flag : {"--listen", "--coordinator"}) {
    auto arguments = Usual();
    if (flag == std::string("--coordinator"))
      arguments.erase(arguments.begin(), arguments.begin() + 2);
    arguments.insert(arguments.end(), {flag, "10.1.2.3:7070", "--insecure-metrics"});
    const auto [code, text] = Fails(arguments);
    EXPECT_EQ(code, 2);
    EXPECT_THAT(text, AllOf(HasSubstr(flag), HasSubstr("plain text")));
  }
  auto arguments = Usual();
  arguments.insert(arguments.end(), {"--tls-ca", "ca", "--insecure"});
  const auto [code, text] = Fails(arguments);
  EXPECT_EQ(code, 2);
  EXPECT_THAT(text, HasSubstr("--insecure asks for plain text, and --tls-ca"));
}

TEST_F(WorkerProcess, AnAddressThatIsNoneIsAUsageError) {
  for (const char* flag : {"--listen", "--metrics-listen", "--coordinator"}) {
    for (const char* address : {"127.0.0.1:99999", "127.0.0.1:1\x1b[31m", "127.0.0.1"}) {
      auto arguments = Usual();
      if (flag == std::string("--coordinator"))
        arguments.erase(arguments.begin(), arguments.begin() + 2);
      arguments.insert(arguments.end(), {flag, address});
      const auto [code, text] = Fails(arguments);
      EXPECT_EQ(code, 2) << flag << " " << address;
      EXPECT_THAT(text, AllOf(HasSubstr(flag), HasSubstr("write HOST:PORT"), Not(HasSubstr("\x1b")),
                              ::testing::EndsWith("\n")));
    }
  }
  auto arguments = Usual();
  arguments[1] = "127.0.0.1:0";
  EXPECT_THAT(Fails(arguments).second, HasSubstr("a port from 1 to 65535"));
}

TEST_F(WorkerProcess, WithoutMetricsItWorksAsWell) {
  auto arguments = Usual();
  arguments.insert(arguments.end(), {"--metrics-listen", ""});
  const auto worker = Spawn(arguments);
  const UniqueFd err = worker->TakeStderr();
  EXPECT_THAT(ReadUntil(err.get(), "in session with the coordinator"), HasSubstr("in session"));
  ASSERT_TRUE(Eventually([&] { return !coordinator_.heard().messages.empty(); }));
  EXPECT_EQ(coordinator_.heard().messages[0].hello().node().metrics_address(), "");
}

TEST_F(WorkerProcess, WrongFlagsAndAMissingEngineAreSaidPlainly) {
  EXPECT_EQ(Fails({}).first, 2);
  auto arguments = Usual();
  arguments.insert(arguments.end(), {"--label", "nonsense"});
  EXPECT_THAT(Fails(arguments).second, HasSubstr("KEY=VALUE"));
  arguments = Usual();
  arguments[5] = "-3";
  const auto [code, text] = Fails(arguments);
  EXPECT_EQ(code, 2);
  EXPECT_THAT(text, AllOf(HasSubstr("--devices"), HasSubstr("-3"), HasSubstr("1 to 4096")));
  arguments = Usual();
  arguments[9] = "/no/such/engine";
  EXPECT_THAT(Fails(arguments).second, HasSubstr("/no/such/engine"));
  arguments[9] = "/bin/true";
  EXPECT_THAT(Fails(arguments).second, HasSubstr("/bin/true version"));
}

// Case: a worker with a wrong address said nothing at the default log level, and one with a name
// that the coordinator does not take dialled for ever.
TEST_F(WorkerProcess, WithoutACoordinatorItSaysSoOnceAndSaysWhenItIsIn) {
  coordinator_.Stop();
  const auto worker = Spawn(Usual());
  const UniqueFd err = worker->TakeStderr();
  EXPECT_THAT(ReadUntil(err.get(), "cannot reach the coordinator"), HasSubstr("cannot reach"));
  EXPECT_THAT(ReadUntil(err.get(), "\n"),
              AllOf(HasSubstr("trying on"), HasSubstr(coordinator_.address()),
                    HasSubstr("Connection refused")));
  coordinator_.Serve();
  EXPECT_THAT(ReadUntil(err.get(), "in session with the coordinator"),
              Not(HasSubstr("cannot reach")));
  coordinator_.Stop();
  EXPECT_THAT(ReadUntil(err.get(), "cannot reach the coordinator"),
              HasSubstr("the session with the coordinator ended"));
}

TEST_F(WorkerProcess, ARefusalForNowIsSaidAndARefusalForEverEndsIt) {
  coordinator_.RejectWith("the name is taken", false);
  const auto worker = Spawn(Usual());
  const UniqueFd err = worker->TakeStderr();
  EXPECT_THAT(ReadUntil(err.get(), "the name is taken"),
              HasSubstr("does not take this worker now; trying on"));
  coordinator_.RejectWith("no such node", true);
  EXPECT_THAT(ReadUntil(err.get(), "mega-worker: "), Not(HasSubstr("the name is taken")));
  EXPECT_THAT(ReadUntil(err.get(), "\n"),
              AllOf(HasSubstr(coordinator_.address()), HasSubstr("no such node")));
  const auto exit = AwaitExit(*worker);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 1);
}

TEST_F(WorkerProcess, ANodesNameIsAHostName) {
  for (const char* name : {"", "a/b", "..", "../x", "-a", "a b", "a_b"}) {
    auto arguments = Usual();
    arguments[7] = name;
    const auto [code, text] = Fails(arguments);
    EXPECT_EQ(code, 2) << name;
    EXPECT_THAT(text, AllOf(HasSubstr(fmt::format("--node is '{}'", name)),
                            HasSubstr("letters, digits and -")));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state"));
}

// Case: no engine could parse its order, and the job stood in Starting for ever.
TEST_F(WorkerProcess, AFolderThatIsNotUtf8IsRefusedByTheNameOfItsFlag) {
  auto arguments = Usual();
  arguments[3] = folder_ / "s\xFF";
  const auto [code, text] = Fails(arguments);
  EXPECT_EQ(code, 2);
  EXPECT_THAT(text, AllOf(HasSubstr("(after --state-dir) is not UTF-8"), HasSubstr("s?")));
}

// A limit on file sizes raises a signal where a full disk only says so.
TEST_F(WorkerProcess, AStateFolderThatTakesNoFileIsSaidPlainly) {
  std::string command = "ulimit -f 0; exec " + std::string(MEGA_BIN_DIR) + "/mega-worker";
  for (const std::string& argument : Usual()) command += " " + argument;
  const auto worker = Process::Fork({.argv = {"/bin/sh", "-c", command},
                                     .environment = {"PATH=/usr/bin:/bin"},
                                     .directory = "/"});
  ASSERT_TRUE(worker.ok() && (*worker)->Release().ok());
  EXPECT_THAT(Output(**worker), AllOf(HasSubstr("worker.json"), HasSubstr("File too large")));
  const auto exit = AwaitExit(**worker);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 1);
}

TEST_F(WorkerProcess, ATakenPortOrStateFolderIsNamed) {
  const auto worker = Spawn(Usual());
  ASSERT_TRUE(EventuallyWithin(absl::Seconds(20),
                               [&] { return std::filesystem::exists(folder_ / "port"); }));
  EXPECT_THAT(Fails(Usual()).second, AllOf(HasSubstr(folder_ / "state"), HasSubstr("--state-dir")));
  std::string taken = mega::testing::ReadFile(folder_ / "port");
  taken.pop_back();
  for (const char* flag : {"--listen", "--metrics-listen"}) {
    auto arguments = Usual();
    arguments[3] = folder_ / "other";
    arguments.insert(arguments.end(), {flag, taken});
    const auto [code, text] = Fails(arguments);
    EXPECT_EQ(code, 1);
    EXPECT_THAT(text, AllOf(HasSubstr(flag), HasSubstr(taken), Not(HasSubstr(".cc:"))));
  }
}

}  // namespace
}  // namespace mega::daemon
