// What `megactl run` prints and how it ends, with real processes and a tiny model. tests/e2e has
// its faults: Ctrl-C, kill -9, a second run beside the first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "absl/time/clock.h"
#include "cli/local/child.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_dir.h"

namespace mega::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr absl::Duration kDeadline = absl::Seconds(100);

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// One `megactl run`. What it starts carries the test's folder in its environment, so that the test
// can find every process of it, wherever it was moved.
class RunProcess {
 public:
  RunProcess(const std::string& folder, std::vector<std::string> arguments) : folder_(folder) {
    std::filesystem::create_directories(folder_);
    setenv("TMPDIR", folder_.c_str(), 1);
    arguments.insert(arguments.begin(),
                     {"run", MEGA_SOURCE_DIR "/deploy/examples/tiny.yaml", "--run-dir",
                      folder_ + "/run", "--set", "data.cache=" + folder_ + "/cache"});
    absl::StatusOr<Child> child = Child::Start({.program = MEGA_BIN_DIR "/megactl",
                                                .arguments = arguments,
                                                .output = folder_ + "/out",
                                                .error_output = folder_ + "/err"});
    unsetenv("TMPDIR");
    if (child.ok()) child_.emplace(*std::move(child));
  }

  pid_t pid() const { return child_->pid(); }
  std::string out() const { return ReadFile(folder_ + "/out"); }
  std::string err() const { return ReadFile(folder_ + "/err"); }

  bool WaitForOutput(const std::string& text) {
    const absl::Time deadline = absl::Now() + kDeadline;
    while (out().find(text) == std::string::npos) {
      if (absl::Now() > deadline || child_->Poll().has_value()) return false;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return true;
  }
  int Wait() {
    if (!child_.has_value() || !child_->WaitFor(kDeadline)) return -1;
    const int status = *child_->Poll();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  // Processes of this run, megactl included.
  std::vector<pid_t> Processes() const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0 || pid == getpid()) continue;
      if (ReadFile(entry.path() / "environ").find("TMPDIR=" + folder_) != std::string::npos)
        found.push_back(pid);
    }
    return found;
  }
  bool AllGoneWithin(absl::Duration span) const {
    const absl::Time deadline = absl::Now() + span;
    while (!Processes().empty()) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return true;
  }

 private:
  std::string folder_;
  std::optional<Child> child_;
};

class RunTest : public ::testing::Test {
 protected:
  const mega::testing::TempDir dir_;
  const std::string folder_ = dir_.path();
};

TEST_F(RunTest, TrainsAndTellsEveryStep) {
  RunProcess run(folder_ + "/a", {"--steps-out", folder_ + "/steps.jsonl"});
  ASSERT_EQ(run.Wait(), 0) << run.err() << run.out();
  const std::string out = run.out();
  for (int step = 1; step <= 20; ++step) {
    const std::regex line("(^|\n)step " + std::to_string(step) +
                          R"(/20 loss \d+\.\d{4} grad_norm \S+ lr \S+ tokens/s \d+ mfu [\d.]+%)");
    EXPECT_TRUE(std::regex_search(out, line)) << step << "\n" << out;
  }
  EXPECT_THAT(out, HasSubstr("training loss"));
  EXPECT_THAT(out, HasSubstr("sample\n"));
  EXPECT_THAT(out, HasSubstr("megactl generate --model"));
  // It is trained to its last step: without further ones there is nothing to go on with.
  EXPECT_THAT(out, ContainsRegex("megactl run .*checkpoint.load=.* --set training.steps=40\n"));

  std::istringstream lines(ReadFile(folder_ + "/steps.jsonl"));
  int64_t steps = 0;
  nlohmann::json step;
  double first = 0;
  for (std::string line; std::getline(lines, line);) {
    step = nlohmann::json::parse(line);
    EXPECT_EQ(step["step"], ++steps);
    for (const char* key : {"loss", "grad_norm", "lr", "tokens_per_s", "mfu", "step_seconds"})
      EXPECT_TRUE(step[key].is_number()) << key;
    if (steps == 1) first = step["loss"];
  }
  EXPECT_EQ(steps, 20);
  EXPECT_NEAR(first, std::log(256), 0.3) << "an untrained model knows nothing of bytes";
  EXPECT_LT(step["loss"], first - 0.3);
  EXPECT_TRUE(step["validation_loss"].is_number());

  const size_t at = out.find("checkpoint  ") + 12;
  EXPECT_TRUE(std::filesystem::exists(out.substr(at, out.find('\n', at) - at) + "/manifest.json"));
  EXPECT_TRUE(run.AllGoneWithin(absl::Seconds(1)));
}

TEST_F(RunTest, SecondCtrlCKillsAtOnce) {
  RunProcess run(folder_ + "/a", {"--set", "training.steps=1000000"});
  ASSERT_TRUE(run.WaitForOutput("step 2/")) << run.err() << run.out();
  kill(run.pid(), SIGINT);
  kill(run.pid(), SIGTERM);
  EXPECT_THAT(run.Wait(), ::testing::AnyOf(130, 143));
  EXPECT_THAT(run.Processes(), ::testing::IsEmpty());
}

TEST_F(RunTest, WhatTheJobFileLacksIsToldBeforeAnythingStarts) {
  RunProcess run(folder_ + "/a", {"--set", "data.paths=[/nowhere/x.txt]"});
  EXPECT_EQ(run.Wait(), 8);
  EXPECT_THAT(run.err(), HasSubstr("data.paths[0]: /nowhere/x.txt: No such file or directory"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a/run"));
  RunProcess narrow(folder_ + "/b", {"--set", "parallelism.data_parallel_size=3", "--devices=2"});
  EXPECT_EQ(narrow.Wait(), 2);
  EXPECT_THAT(narrow.err(), HasSubstr("give --devices 3"));
  // More devices than a worker takes: it would be started again and again.
  RunProcess wide(folder_ + "/c", {"--set", "parallelism.data_parallel_size=8193"});
  EXPECT_EQ(wide.Wait(), 2);
  EXPECT_THAT(wide.err(), HasSubstr("a worker has at most 4096 devices; give --workers 3"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/c/run"));
}

TEST_F(RunTest, FailedJobIsToldWithItsRanksLastWords) {
  std::ofstream(folder_ + "/short.txt") << "too short";
  RunProcess run(folder_ + "/a", {"--set", "data.paths=[" + folder_ + "/short.txt]"});
  EXPECT_EQ(run.Wait(), 1) << run.out();
  EXPECT_THAT(run.err(), HasSubstr("job tiny is Failed"));
  EXPECT_THAT(run.err(), HasSubstr("short.txt"));
  EXPECT_THAT(run.err(), HasSubstr("logs: "));
  EXPECT_TRUE(run.AllGoneWithin(absl::Seconds(1)));
}

}  // namespace
}  // namespace mega::cli
