// Answers for scripts and shells: JSON of the commands that wait, tell and delete; what is offered
// for completion; mistakes that are told where they are made.
#include <gmock/gmock.h>

#include "nlohmann/json.hpp"
#include "tests/cli/commands/commands_fixture.h"

namespace mega::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kTiny[] = MEGA_SOURCE_DIR "/deploy/examples/tiny.yaml";

TEST_F(CommandsTest, WaitingAndDescribingAnswerInJsonToo) {
  coordinator_.get = [](const v1::GetJobRequest&, v1::Job* job) {
    Fill(job, v1::JOB_PHASE_FAILED);
    job->mutable_resolved_spec()->mutable_training()->set_steps(7);
    return grpc::Status::OK;
  };
  const Result waited = Run({"wait", "tiny", "-o", "json"});
  EXPECT_EQ(waited.code, 100);
  EXPECT_EQ(nlohmann::json::parse(waited.out)["phase"], "JOB_PHASE_FAILED");
  EXPECT_THAT(Run({"wait", "tiny", "-q", "-o", "json"}).out, IsEmpty());
  EXPECT_EQ(nlohmann::json::parse(Run({"describe", "tiny", "-o", "json"}).out)["uid"], "abc123");
  const std::string line = Run({"describe", "tiny", "-w", "-o", "json"}).out;
  EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  EXPECT_EQ(nlohmann::json::parse(
                Run({"describe", "tiny", "--spec", "-o", "json"}).out)["training"]["steps"],
            7);
  EXPECT_THAT(Run({"describe", "tiny", "-o", "yaml"}).out, HasSubstr("uid: abc123\n"));
  EXPECT_EQ(nlohmann::json::parse(Run({"namespaces", "delete", "team", "-o", "json"}).out),
            nlohmann::json::object());
  EXPECT_EQ(Run({"namespaces", "delete", "team"}).out, "namespace team has no limits any more\n");
}

// Case: an attempt that ended before its first report stood at step 0, and a cause of three lines
// tore the table.
TEST_F(CommandsTest, AnAttemptIsOneLineAndStandsNoEarlierThanItBegan) {
  coordinator_.get = [](const v1::GetJobRequest&, v1::Job* job) {
    Fill(job, v1::JOB_PHASE_RUNNING);
    v1::Attempt& attempt = *job->add_attempts();
    attempt.set_number(9);
    attempt.set_start_step(4711);
    attempt.set_cause("rank 1 ended with code 1: one\ntwo\x1b[2J");
    return grpc::Status::OK;
  };
  const Result told = Run({"describe", "tiny"});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_THAT(told.out, ContainsRegex("9 .*4711 +4711 .*with code 1: one two\\?\\[2J\n"));
}

TEST_F(CommandsTest, ARequestIdIsOneLineOfText) {
  for (const char* id : {"a\x01", "a\nb", "a\x1b[2J"}) {
    const Result result = Run({"submit", kTiny, "--request-id", id});
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("holds a control character"));
    EXPECT_THAT(result.err, Not(HasSubstr(id)));
  }
}

TEST_F(CommandsTest, ALoopOfLinksIsToldAsOne) {
  std::filesystem::create_symlink("loop", folder_ + "/loop");
  const Result result = Run({"run", kTiny, "--set", "data.paths=[" + folder_ + "/loop]"});
  EXPECT_EQ(result.code, 8);
  EXPECT_THAT(result.err, HasSubstr("loop: Too many levels of symbolic links"));
}

// Two jobs of one name are one word, and the coordinator on the line is the one that is asked.
TEST_F(CommandsTest, BashCompletesWhatTheCoordinatorOnTheLineHas) {
  coordinator_.list = [](const v1::ListJobsRequest& request, v1::ListJobsResponse* jobs) {
    const std::string name = request.parent() == "namespaces/team" ? "team-job" : "tiny";
    for (int i = 0; i < 2; ++i) {
      Fill(jobs->add_jobs(), v1::JOB_PHASE_RUNNING);
      jobs->mutable_jobs(i)->mutable_metadata()->set_name(name);
    }
    Fill(jobs->add_jobs(), v1::JOB_PHASE_RUNNING);
    jobs->mutable_jobs(2)->mutable_metadata()->set_name("$(touch " + request.parent() + ")");
    return grpc::Status::OK;
  };
  // As bash calls it: COMP_WORDS are cut at colons, COMP_LINE is not.
  std::ofstream(folder_ + "/complete.sh") << R"(
PATH=$1:$PATH
source <(megactl completion bash)
COMP_LINE=$2 COMP_POINT=${#2}
read -rd '' -a COMP_WORDS <<< "${2//:/ : }|"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_WORDS[COMP_CWORD]=${COMP_WORDS[COMP_CWORD]%|}
_megactl
printf '%s\n' "${COMPREPLY[@]}"
)";
  const auto complete = [&](const std::string& line) {
    std::filesystem::remove(folder_ + "/out");
    absl::StatusOr<Child> bash =
        Child::Start({.program = "/bin/bash",
                      .arguments = {folder_ + "/complete.sh", MEGA_BIN_DIR, line},
                      .output = folder_ + "/out",
                      .error_output = folder_ + "/err"});
    EXPECT_TRUE(bash.ok() && bash->WaitFor(kDeadline));
    return ReadFile(folder_ + "/out");
  };
  const std::string to = "megactl --coordinator " + coordinator_.address() + " ";
  EXPECT_EQ(complete(to + "describe t"), "tiny\n");
  EXPECT_EQ(complete("megactl describe --coordinator=" + coordinator_.address() + " t"), "tiny\n");
  EXPECT_EQ(complete("megactl wait -n team --coordinator " + coordinator_.address() + " te"),
            "team-job\n");
  EXPECT_THAT(complete(to + "get "), HasSubstr("$(touch namespaces/default)\n")) << "and not run";
  EXPECT_EQ(complete(to + "cordon "), "node-1\n");
  EXPECT_EQ(complete(to + "descr"), "describe\n");
  EXPECT_EQ(complete("megactl --coordinator 127.0.0.1:1 describe t"), "\n");
  EXPECT_EQ(complete("megactl get -o j"), "json\n");
  EXPECT_THAT(ReadFile(folder_ + "/err"), IsEmpty());
}

}  // namespace
}  // namespace mega::cli
