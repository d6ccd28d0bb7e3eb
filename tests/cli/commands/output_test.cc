// What megactl prints is its result: one that cannot be written is a failure.
#include <gmock/gmock.h>

#include "tests/cli/commands/commands_fixture.h"

namespace mega::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTiny[] = MEGA_SOURCE_DIR "/deploy/examples/tiny.yaml";

class OutputTest : public CommandsTest {
 protected:
  // `redirection` as a shell has it.
  Result RunInto(const std::string& redirection, std::vector<std::string> words) {
    std::filesystem::remove(folder_ + "/err");
    words.insert(words.begin(), {"-c", "exec \"$@\" " + redirection, "sh", MEGA_BIN_DIR "/megactl",
                                 "--coordinator", coordinator_.address()});
    absl::StatusOr<Child> child = Child::Start({.program = "/bin/sh",
                                                .arguments = words,
                                                .output = folder_ + "/out",
                                                .error_output = folder_ + "/err"});
    if (!child.ok() || !child->WaitFor(kDeadline)) return {};
    const int status = *child->Poll();
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), "",
            ReadFile(folder_ + "/err")};
  }
};

TEST_F(OutputTest, WhatCannotBeWrittenIsAFailureThatIsTold) {
  JobIs(v1::JOB_PHASE_SUCCEEDED);
  coordinator_.list = [](const v1::ListJobsRequest&, v1::ListJobsResponse* jobs) {
    Fill(jobs->add_jobs(), v1::JOB_PHASE_RUNNING);
    return grpc::Status::OK;
  };
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"},
                                                {"get", "--help"},
                                                {"get"},
                                                {"get", "-o", "json"},
                                                {"describe", "tiny"},
                                                {"nodes", "-o", "json"},
                                                {"wait", "tiny"},
                                                {"plan", kTiny, "--nodes", "1", "--devices", "2"},
                                                {"version"},
                                                {"schema"},
                                                {"completion", "bash"},
                                                {"checkpoints", "verify", "--help"},
                                                {"generate", "--help"}}) {
    const Result full = RunInto(">/dev/full", words);
    EXPECT_EQ(full.code, 1) << words[0];
    EXPECT_THAT(full.err, HasSubstr("standard output could not be written: No space left"));
    const Result closed = RunInto(">&-", words);
    EXPECT_EQ(closed.code, 1) << words[0];
    EXPECT_THAT(closed.err, HasSubstr("standard output could not be written: Bad file"));
  }
  EXPECT_EQ(RunInto(">&-", {"wait", "-q", "tiny"}).code, 0) << "it has nothing to write";
  EXPECT_EQ(RunInto(">/dev/full", {"gett"}).code, 2);
}

TEST_F(OutputTest, AReaderThatHasLeftIsToldNothing) {
  for (const char* pipe : {"| head -c 1 >/dev/null", "| :"}) {
    EXPECT_THAT(RunInto(pipe, {"schema"}).err, IsEmpty());
    EXPECT_THAT(RunInto(std::string("--help ") + pipe, {}).err, IsEmpty());
  }
}

// Without an end of their own: the coordinator writes until megactl hangs up.
TEST_F(OutputTest, FollowingEndsWithTheFirstWriteThatFails) {
  coordinator_.get = [](const v1::GetJobRequest&, v1::Job* job) {
    Fill(job, v1::JOB_PHASE_RUNNING);
    job->add_attempts()->set_number(1);
    return grpc::Status::OK;
  };
  coordinator_.logs = [](const v1::StreamLogsRequest&, grpc::ServerWriter<v1::LogChunk>* writer) {
    v1::LogChunk chunk;
    chunk.set_attempt(1);
    chunk.set_data("a line\n");
    while (writer->Write(chunk)) chunk.set_offset(chunk.offset() + 7);
    return grpc::Status::OK;
  };
  coordinator_.steps = [](const v1::StreamStepsRequest&,
                          grpc::ServerWriter<v1::StepReport>* writer) {
    v1::StepReport report;
    do {
      report.set_step(report.step() + 1);
    } while (writer->Write(report));
    return grpc::Status::OK;
  };
  for (const std::vector<std::string>& words : {std::vector<std::string>{"logs", "-f", "tiny"},
                                                {"logs", "-f", "tiny", "--exit-status"},
                                                {"steps", "-f", "tiny"},
                                                {"get", "-w", "tiny"}}) {
    const Result result = RunInto(">/dev/full", words);
    EXPECT_EQ(result.code, 1) << words[0];
    EXPECT_THAT(result.err, HasSubstr("standard output could not be written: No space left"));
  }
}

}  // namespace
}  // namespace mega::cli
