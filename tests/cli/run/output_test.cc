// Every program's output that cannot be written is a failure; `run` ends with the first one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/local/child.h"
#include "fmt/core.h"
#include "tests/support/temp_dir.h"

namespace mega::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class OutputTest : public ::testing::Test {
 protected:
  // A shell's exit code, with the programs of this build at hand.
  int Shell(const std::string& command) {
    absl::StatusOr<Child> child =
        Child::Start({.program = "/bin/sh",
                      .arguments = {"-c", "PATH=" MEGA_BIN_DIR ":$PATH; " + command},
                      .output = folder_ + "/out"});
    if (!child.ok() || !child->WaitFor(absl::Seconds(100))) return -1;
    const int status = *child->Poll();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // Of both streams since the last call.
  std::string Output() {
    std::ifstream file(folder_ + "/out");
    std::ostringstream text;
    text << file.rdbuf();
    std::filesystem::remove(folder_ + "/out");
    return text.str();
  }

  const mega::testing::TempDir dir_;
  const std::string folder_ = dir_.path();
};

TEST_F(OutputTest, NoProgramTakesAFullDiskForSuccess) {
  for (const char* command :
       {"mega-coordinator --help", "mega-coordinator version", "mega-worker --help",
        "mega-worker --version", "mega-engine --help", "mega-engine version -o json"}) {
    for (const char* redirection : {" >/dev/full", " >&-"}) {
      EXPECT_EQ(Shell(command + std::string(redirection)), 1) << command;
      EXPECT_THAT(Output(), HasSubstr("standard output could not be written"));
    }
    EXPECT_EQ(Shell(command), 0);
    Output();
  }
}

TEST_F(OutputTest, ARunEndsWhenItsStepsCannotBeWritten) {
  const std::string run = "exec megactl run " MEGA_SOURCE_DIR
                          "/deploy/examples/tiny.yaml --set training.steps=1000000 --set "
                          "data.cache=" +
                          folder_ + "/cache --run-dir " + folder_;
  EXPECT_EQ(Shell(run + "/a >/dev/full"), 1);
  EXPECT_THAT(Output(), HasSubstr("megactl: standard output could not be written: No space left"));
  EXPECT_EQ(Shell(run + "/b --steps-out /dev/full"), 1);
  EXPECT_THAT(Output(), AllOf(HasSubstr("megactl: --steps-out: No space left"),
                              HasSubstr("cancelling the job")));
}

}  // namespace
}  // namespace mega::cli
