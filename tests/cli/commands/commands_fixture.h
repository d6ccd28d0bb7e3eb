// megactl as a process against a scripted coordinator.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/local/child.h"
#include "tests/cli/commands/scripted_coordinator.h"
#include "tests/support/temp_dir.h"

namespace mega::cli {

inline constexpr absl::Duration kDeadline = absl::Seconds(60);

struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class CommandsTest : public ::testing::Test {
 protected:
  CommandsTest() {
    // No configuration of the person who runs the tests.
    setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    unsetenv("MEGACTL_COORDINATOR");
    unsetenv("MEGACTL_NAMESPACE");
  }

  absl::StatusOr<Child> Start(const std::vector<std::string>& arguments) {
    return Child::Start({.program = MEGA_BIN_DIR "/megactl",
                         .arguments = arguments,
                         .output = folder_ + "/out",
                         .error_output = folder_ + "/err"});
  }
  // Without a coordinator.
  Result RunAlone(const std::vector<std::string>& arguments) {
    std::filesystem::remove(folder_ + "/out");
    std::filesystem::remove(folder_ + "/err");
    absl::StatusOr<Child> child = Start(arguments);
    if (!child.ok() || !child->WaitFor(kDeadline)) return {};
    const int status = *child->Poll();
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), ReadFile(folder_ + "/out"),
            ReadFile(folder_ + "/err")};
  }
  Result Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--coordinator", coordinator_.address()});
    return RunAlone(arguments);
  }
  std::string JobFile(const std::string& text) {
    const std::string path = folder_ + "/job.yaml";
    std::ofstream(path) << text;
    return path;
  }

  static void Fill(v1::Job* job, v1::JobPhase phase) {
    job->set_name("namespaces/default/jobs/abc123");
    job->set_uid("abc123");
    job->mutable_metadata()->set_name("tiny");
    job->set_phase(phase);
  }
  void JobIs(v1::JobPhase phase) {
    coordinator_.get = [phase](const v1::GetJobRequest&, v1::Job* job) {
      Fill(job, phase);
      return grpc::Status::OK;
    };
  }
  void GetFails(grpc::StatusCode code) {
    coordinator_.get = [code](const v1::GetJobRequest&, v1::Job*) {
      return grpc::Status(code, "scripted");
    };
  }

  ScriptedCoordinator coordinator_;
  const mega::testing::TempDir dir_;
  const std::string folder_ = dir_.path();
};

}  // namespace mega::cli
