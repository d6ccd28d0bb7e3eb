#include "cli/local/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/time/clock.h"
#include "cli/local/local_cluster.h"
#include "tests/support/temp_dir.h"

namespace mega::cli {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(20);

class LocalTest : public ::testing::Test {
 protected:
  absl::StatusOr<Child> Shell(const std::string& script) {
    return Child::Start(
        {.program = "/bin/sh", .arguments = {"-c", script}, .output = folder_ + "/output"});
  }
  std::string Script(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  const mega::testing::TempDir dir_;
  const std::string folder_ = dir_.path();
};

bool WaitUntilGone(pid_t pid) {
  const absl::Time deadline = absl::Now() + kDeadline;
  while (kill(pid, 0) == 0) {
    if (absl::Now() > deadline) return false;
    waitpid(-1, nullptr, WNOHANG);
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

std::string WaitForText(const std::string& path) {
  const absl::Time deadline = absl::Now() + kDeadline;
  while (absl::Now() < deadline) {
    const std::string text = TailOfFile(path, 1000);
    if (!text.empty() && text.back() == '\n') return text;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return "";
}

TEST_F(LocalTest, ChildWritesItsLogAndTellsItsEnd) {
  absl::StatusOr<Child> child = Shell("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(child.ok()) << child.status();
  ASSERT_TRUE(child->WaitFor(kDeadline));
  EXPECT_EQ(DescribeWaitStatus(*child->Poll()), "exit code 3");
  EXPECT_EQ(TailOfFile(folder_ + "/output", 100), "out\nerr\n");
}

TEST_F(LocalTest, MissingProgramIsAnError) {
  EXPECT_THAT(Child::Start({.program = folder_ + "/none", .output = folder_ + "/output"})
                  .status()
                  .ToString(),
              ::testing::HasSubstr("/none"));
}

TEST_F(LocalTest, AskEndsStandardInput) {
  absl::StatusOr<Child> child = Shell("trap '' TERM; echo ready; while read x; do :; done; exit 7");
  ASSERT_TRUE(child.ok());
  // Before its trap is set the request itself would end it.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (TailOfFile(folder_ + "/output", 100) != "ready\n") {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
  EXPECT_FALSE(child->Poll().has_value());
  child->Ask();
  ASSERT_TRUE(child->WaitFor(kDeadline));
  EXPECT_EQ(DescribeWaitStatus(*child->Poll()), "exit code 7");
}

TEST_F(LocalTest, DestructorKillsTheWholeGroup) {
  pid_t grandchild = 0;
  {
    absl::StatusOr<Child> child = Shell("sleep 1000 & echo $!; wait");
    ASSERT_TRUE(child.ok());
    grandchild = std::atoi(WaitForText(folder_ + "/output").c_str());
    ASSERT_GT(grandchild, 0);
  }
  EXPECT_TRUE(WaitUntilGone(grandchild));
}

TEST_F(LocalTest, DescendantsInGroupsOfTheirOwnEndToo) {
  AdoptOrphans();
  {
    absl::StatusOr<Child> child = Shell("setsid sleep 1000 & echo $!; wait");
    ASSERT_TRUE(child.ok());
    ASSERT_NE(WaitForText(folder_ + "/output"), "");
  }
  EXPECT_TRUE(EndAllDescendants(kDeadline));
}

TEST_F(LocalTest, OrphansAreReapedAndOwnChildrenAreNot) {
  AdoptOrphans();
  absl::StatusOr<Child> parent = Shell("sh -c 'echo $$; exit 0' & exit 5");
  ASSERT_TRUE(parent.ok());
  const pid_t orphan = std::atoi(WaitForText(folder_ + "/output").c_str());
  ASSERT_GT(orphan, 0);
  const absl::Time deadline = absl::Now() + kDeadline;
  ASSERT_TRUE(parent->WaitFor(kDeadline));
  EXPECT_EQ(DescribeWaitStatus(*parent->Poll()), "exit code 5");
  while (kill(orphan, 0) == 0) {
    ASSERT_LT(absl::Now(), deadline);
    ReapOrphans({parent->pid()});
  }
}

TEST_F(LocalTest, DeadCoordinatorIsTold) {
  LocalClusterOptions options{
      .coordinator_program = Script("coordinator", "echo no port >&2; exit 1\n"),
      .worker_program = Script("worker", "cat\n"),
      .folder = folder_ + "/run"};
  EXPECT_THAT(std::string(LocalCluster::Start(options).status().message()),
              ::testing::AllOf(::testing::HasSubstr("mega-coordinator ended with exit code 1"),
                               ::testing::HasSubstr("no port")));
}

// A stand-in that writes its port file and waits for the end of its input.
constexpr char kServe[] =
    "for a in \"$@\"; do case $a in --port-file=*) echo 127.0.0.1:7 > ${a#--port-file=}.t; mv "
    "${a#--port-file=}.t ${a#--port-file=};; esac; done\n"
    "echo \"$@\"\n"
    "while read x; do :; done\n";

TEST_F(LocalTest, DeadMembersAreStartedAgainWhereTheyWere) {
  LocalClusterOptions options{.coordinator_program = Script("coordinator", kServe),
                              .worker_program = Script("worker", "echo up; read x\n"),
                              .folder = folder_ + "/run",
                              .workers = 2};
  absl::StatusOr<std::unique_ptr<LocalCluster>> cluster = LocalCluster::Start(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ((*cluster)->address(), "127.0.0.1:7");
  const std::string log = folder_ + "/run/logs/coordinator.log";
  EXPECT_THAT(WaitForText(log), ::testing::HasSubstr("--listen=127.0.0.1:0"));

  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", getpid()));
  pid_t coordinator = 0;
  ASSERT_TRUE(children >> coordinator);
  kill(coordinator, SIGKILL);
  std::vector<std::string> told;
  const absl::Time deadline = absl::Now() + kDeadline;
  while (told.empty() && absl::Now() < deadline) {
    absl::StatusOr<std::vector<std::string>> now = (*cluster)->Supervise();
    ASSERT_TRUE(now.ok()) << now.status();
    told = *now;
  }
  EXPECT_THAT(told,
              ::testing::ElementsAre("mega-coordinator ended with signal 9; started it again"));
  const absl::Time second = absl::Now() + kDeadline;
  while (TailOfFile(log, 4000).find("--listen=127.0.0.1:7") == std::string::npos)
    ASSERT_LT(absl::Now(), second);
  (*cluster)->Stop(absl::Seconds(10));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

TEST_F(LocalTest, MemberThatKeepsDyingEndsTheRun) {
  LocalClusterOptions options{.coordinator_program = Script("coordinator", kServe),
                              .worker_program = Script("worker", "echo cannot start; exit 1\n"),
                              .folder = folder_ + "/run"};
  absl::StatusOr<std::unique_ptr<LocalCluster>> cluster = LocalCluster::Start(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  absl::Status status;
  const absl::Time deadline = absl::Now() + kDeadline;
  while (status.ok() && absl::Now() < deadline) status = (*cluster)->Supervise().status();
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(::testing::HasSubstr("mega-worker worker-1 ended with exit code 1"),
                               ::testing::HasSubstr("cannot start")));
}

}  // namespace
}  // namespace mega::cli
