#include "worker/daemon/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "base/proc_stat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace {

// A process that sleeps uninterruptibly ("D"): signals wait until it wakes up.
std::atomic<pid_t> uninterruptible{0};

}  // namespace

// In the place of libc's.
extern "C" int kill(pid_t pid, int signal) noexcept {
  if (uninterruptible != 0 && (pid == uninterruptible || pid == -uninterruptible)) return 0;
  return static_cast<int>(syscall(SYS_kill, pid, signal));
}

namespace mega::daemon {
namespace {

const RankKey kRank{"job", 1, 1, 0};

std::unique_ptr<Process> Shell(const std::string& script, const std::string& folder = "/") {
  auto process = Process::Fork({.argv = {"/bin/sh", "-c", script},
                                .environment = {"PATH=/usr/bin:/bin", "GREETING=hello"},
                                .directory = folder});
  EXPECT_TRUE(process.ok()) << process.status();
  return *std::move(process);
}

std::string ReadToEnd(const UniqueFd& fd) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t got = read(fd.get(), buffer, sizeof(buffer));
    if (got <= 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
}

bool Alive(pid_t pid) {
  const char state = ProcessState(pid);
  return state != 0 && state != 'Z';
}

// Ends of supervised processes, as they are told.
class Ends {
 public:
  struct End {
    RankKey key;
    ProcessExit exit;
    bool by_worker;
  };
  void operator()(const RankKey& key, ProcessExit exit, bool by_worker) {
    MutexLock lock(mu_);
    ends_.push_back({key, exit, by_worker});
    changed_.NotifyAll();
  }
  std::vector<End> Await(size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mu_);
    while (ends_.size() < count && changed_.WaitUntil(mu_, deadline)) {
    }
    return ends_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::vector<End> ends_ MEGA_GUARDED_BY(mu_);
};

class SupervisorTest : public ::testing::Test {
 protected:
  pid_t Run(const RankKey& key, const std::string& script) {
    auto process = Shell(script);
    const pid_t pid = process->pid();
    out_ = process->TakeStdout();
    supervisor_.Add(key, std::move(process));
    EXPECT_TRUE(supervisor_.Release(key, [] { return true; }).ok());
    return pid;
  }

  Ends ends_;
  UniqueFd out_;
  Supervisor supervisor_{{}, [this](const RankKey& key, ProcessExit exit, bool by_worker) {
                           ends_(key, exit, by_worker);
                         }};
};

TEST(Process, RunsNothingBeforeItsGateOpens) {
  testing::TempDir folder;
  const auto process = Shell("echo ran > ran", folder.path());
  EXPECT_GT(process->start_time_ticks(), 0);
  EXPECT_EQ(process->start_time_ticks(), StartTimeTicks(process->pid()));
  EXPECT_FALSE(std::filesystem::exists(folder / "ran"));
  ASSERT_TRUE(process->Release().ok());
  ReadToEnd(process->TakeStdout());
  EXPECT_TRUE(std::filesystem::exists(folder / "ran"));
}

TEST(Process, LeavesWhenItsParentGoesBeforeTheGateOpened) {
  testing::TempDir folder;
  pid_t pid = -1;
  {
    const auto process = Shell("echo ran > ran", folder.path());
    pid = process->pid();
  }
  EXPECT_FALSE(Alive(pid));
  EXPECT_FALSE(std::filesystem::exists(folder / "ran"));
}

TEST(Process, GetsItsEnvironmentAndNoDescriptorOfOurs) {
  const UniqueFd ours(open("/dev/zero", O_RDONLY));  // not close-on-exec
  ASSERT_TRUE(ours);
  const auto process = Shell("echo $GREETING; env | wc -l; ls /proc/self/fd | tr '\\n' ' '");
  const UniqueFd out = process->TakeStdout();
  ASSERT_TRUE(process->Release().ok());
  // PATH, GREETING and the shell's PWD; ls itself opens the fourth descriptor.
  EXPECT_EQ(ReadToEnd(out), "hello\n3\n0 1 2 3 ");
}

TEST(Process, AProgramThatCannotRunIsAnErrorThatNamesIt) {
  auto process = *Process::Fork({.argv = {"/no/such/engine"}, .environment = {}, .directory = "/"});
  const absl::Status status = process->Release();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("/no/such/engine"), std::string::npos);
}

TEST_F(SupervisorTest, TellsTheExitCode) {
  Run(kRank, "exit 37");
  const auto ends = ends_.Await(1);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].key, kRank);
  EXPECT_EQ(ends[0].exit.code, 37);
  EXPECT_EQ(ends[0].exit.signal, 0);
  EXPECT_FALSE(ends[0].by_worker);
}

TEST_F(SupervisorTest, TellsASignalOfSomebodyElseFromItsOwn) {
  kill(Run(kRank, "exec sleep 600"), SIGKILL);
  auto ends = ends_.Await(1);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit.signal, SIGKILL);
  EXPECT_FALSE(ends[0].by_worker);
  Run(kRank, "exec sleep 600");
  supervisor_.KillAll();
  ends = ends_.Await(2);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[1].exit.signal, SIGKILL);
  EXPECT_TRUE(ends[1].by_worker);
}

TEST_F(SupervisorTest, StopGivesGraceThenKills) {
  Run(kRank, "trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done");
  char c;
  ASSERT_EQ(read(out_.get(), &c, 1), 1);  // the trap is set
  supervisor_.Stop(kRank, absl::Seconds(20));
  auto ends = ends_.Await(1);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit.code, 5);
  EXPECT_TRUE(ends[0].by_worker);

  Run(kRank, "trap '' TERM; echo up; while :; do sleep 0.01; done");
  ASSERT_EQ(read(out_.get(), &c, 1), 1);
  supervisor_.Stop(kRank, absl::Milliseconds(50));
  ends = ends_.Await(2);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[1].exit.signal, SIGKILL);
}

TEST_F(SupervisorTest, ADeadRankLeavesNoDescendants) {
  Run(kRank, "sleep 600 & echo $!; exec sleep 600");
  char buffer[32] = {};
  ASSERT_GT(read(out_.get(), buffer, sizeof(buffer) - 1), 0);
  const pid_t grandchild = std::stoi(buffer);
  ASSERT_TRUE(Alive(grandchild));
  supervisor_.Stop(kRank, absl::ZeroDuration());
  ends_.Await(1);
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (Alive(grandchild) && absl::Now() < deadline) sched_yield();
  EXPECT_FALSE(Alive(grandchild));
}

TEST_F(SupervisorTest, StartsNothingWithoutALease) {
  supervisor_.Add(kRank, Shell("exit 0"));
  EXPECT_FALSE(supervisor_.Release(kRank, [] { return false; }).ok());
  const auto ends = ends_.Await(1);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].exit.signal, SIGKILL);
  EXPECT_TRUE(ends[0].by_worker);
}

// Case: a hung driver. The rank is counted, others come and go, and its end is told when it comes.
TEST(Supervisor, ARankThatOutlivesSigkillIsToldFromItsEndOn) {
  Ends ends;
  Supervisor supervisor(
      {.kill_wait = absl::Milliseconds(20)},
      [&](const RankKey& key, ProcessExit exit, bool by_worker) { ends(key, exit, by_worker); });
  auto process = Shell("exec sleep 600");
  const pid_t pid = process->pid();
  supervisor.Add(kRank, std::move(process));
  ASSERT_TRUE(supervisor.Release(kRank, [] { return true; }).ok());
  EXPECT_EQ(supervisor.unkillable(), 0);

  uninterruptible = pid;
  supervisor.Stop(kRank, absl::ZeroDuration());
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (supervisor.unkillable() == 0 && absl::Now() < deadline) sched_yield();
  EXPECT_EQ(supervisor.unkillable(), 1);
  const RankKey other{"job", 1, 1, 1};
  supervisor.Add(other, Shell("exit 3"));
  ASSERT_TRUE(supervisor.Release(other, [] { return true; }).ok());
  ASSERT_EQ(ends.Await(1).size(), 1u);
  EXPECT_EQ(ends.Await(1)[0].key, other);
  EXPECT_TRUE(Alive(pid));

  uninterruptible = 0;
  kill(pid, SIGKILL);  // the one that waited
  ASSERT_EQ(ends.Await(2).size(), 2u);
  EXPECT_EQ(ends.Await(2)[1].key, kRank);
  EXPECT_EQ(ends.Await(2)[1].exit.signal, SIGKILL);
  EXPECT_TRUE(ends.Await(2)[1].by_worker);
  EXPECT_EQ(supervisor.unkillable(), 0);
}

TEST(Supervisor, ACgroupReachesADescendantThatLeftTheSession) {
  const auto cgroups = CgroupParent::Detect(fmt::format("test-{}", getpid()), 1);
  if (!cgroups) GTEST_SKIP() << "cgroup v2 is not mounted or not writable here";
  const auto probe = Shell("exec sleep 600");
  const auto group = cgroups->Make("probe");
  if (!group || !group->Enter(probe->pid())) GTEST_SKIP() << "processes cannot be moved here";
  Ends ends;
  Supervisor supervisor(
      {.cgroups = cgroups.get()},
      [&](const RankKey& key, ProcessExit exit, bool by_worker) { ends(key, exit, by_worker); });
  auto process = Shell("setsid sh -c 'echo $$; exec sleep 600' & exec sleep 600");
  const UniqueFd out = process->TakeStdout();
  supervisor.Add(kRank, std::move(process));
  ASSERT_TRUE(supervisor.Release(kRank, [] { return true; }).ok());
  char buffer[32] = {};
  ASSERT_GT(read(out.get(), buffer, sizeof(buffer) - 1), 0);
  const pid_t descendant = std::stoi(buffer);
  supervisor.Stop(kRank, absl::ZeroDuration());
  ASSERT_EQ(ends.Await(1).size(), 1u);
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (Alive(descendant) && absl::Now() < deadline) sched_yield();
  EXPECT_FALSE(Alive(descendant));
  if (Alive(descendant)) kill(descendant, SIGKILL);
}

TEST_F(SupervisorTest, OneSlowRankDoesNotKeepTheOthersWaiting) {
  const RankKey slow{"job", 1, 1, 1};
  Run(slow, "exec sleep 600");
  for (int64_t i = 2; i < 12; ++i) Run({"job", 1, 1, i}, "exit 0");
  EXPECT_EQ(ends_.Await(10).size(), 10u);
}

}  // namespace
}  // namespace mega::daemon
