// megactl as a process against a scripted coordinator: output, exit codes, reconnection.
#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>

#include "absl/strings/str_split.h"
#include "fmt/core.h"
#include "nlohmann/json.hpp"
#include "tests/cli/commands/commands_fixture.h"

namespace mega::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTiny[] = MEGA_SOURCE_DIR "/deploy/examples/tiny.yaml";

TEST_F(CommandsTest, UsageErrorsAreTwo) {
  EXPECT_EQ(RunAlone({}).code, 2);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"submitt"}, {"submitt", "--help"}, {"submitt", "job.yaml"}}) {
    const Result result = RunAlone(words);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("'submitt' is not a command of megactl; did you mean "
                                      "megactl submit?"));
  }
  EXPECT_THAT(RunAlone({"checkpoints", "remove", "--help"}).err,
              HasSubstr("'remove' is not a command of megactl checkpoints"));
  EXPECT_EQ(RunAlone({"submit"}).code, 2);
  EXPECT_EQ(RunAlone({"get", "-o", "xml"}).code, 2);
  EXPECT_EQ(RunAlone({"--coordinator", "nowhere", "get"}).code, 2);
  EXPECT_EQ(RunAlone({"wait", "x", "--timeout", "soon"}).code, 2);
}

TEST_F(CommandsTest, NumbersOutOfRangeAreRefusedWithTheRange) {
  JobIs(v1::JOB_PHASE_RUNNING);
  for (const auto& [arguments, range] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"wait", "x", "--timeout", "-1s"}, "0s or more"},
           {{"logs", "x", "--rank", "-1"}, "at least 0"},
           {{"logs", "x", "--attempt", "-1"}, "at least 1"},
           {{"logs", "x", "--tail", "-1"}, "1 byte or more"},
           {{"steps", "x", "--from", "-3"}, "at least 1"},
           {{"scale", "x", "--nodes", "-2"}, "at least 1"},
           {{"namespaces", "set", "x", "--max-jobs", "99999999999999999999"}, "from -9223372036"},
           {{"plan", kTiny, "--nodes", "-2"}, "1 to 100000"},
           {{"plan", kTiny, "--nodes", "1", "--devices", "0"}, "1 to 4096"},
           {{"run", kTiny, "--devices", "-1"}, "1 to 4096"},
           {{"run", kTiny, "--workers", "0"}, "1 to 256"}}) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 2) << arguments[2];
    EXPECT_THAT(result.err, HasSubstr(range));
    EXPECT_LT(result.err.size(), 300u) << result.err;
  }
}

TEST_F(CommandsTest, ANamespaceIsADnsLabelWhereverItIsGiven) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"get"}, {"submit", kTiny}, {"run", kTiny}, {"plan", kTiny}}) {
    std::vector<std::string> arguments = {"-n", "../x"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 2) << command[0];
    EXPECT_THAT(result.err, HasSubstr("'../x' is not a namespace, which is 1 to 63 of a-z"));
  }
  setenv("MEGACTL_NAMESPACE", "A", 1);
  const Result result = Run({"get"});
  unsetenv("MEGACTL_NAMESPACE");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("'A' (from MEGACTL_NAMESPACE)"));
}

TEST_F(CommandsTest, EveryCommandsHelpStartsWithAnExample) {
  for (const char* command : {"run", "submit", "get", "describe", "nodes", "logs", "events",
                              "steps", "cancel", "pause", "resume", "restart", "scale", "wait",
                              "plan", "checkpoints", "version", "completion", "schema"}) {
    const Result result = RunAlone({command, "--help"});
    EXPECT_EQ(result.code, 0) << command;
    EXPECT_TRUE(result.out.starts_with(fmt::format("Example: "))) << result.out;
    EXPECT_THAT(result.out.substr(0, result.out.find('\n')), HasSubstr("megactl"));
  }
  EXPECT_THAT(RunAlone({"--help"}).out, HasSubstr("Exit codes: 0 ok"));
}

TEST_F(CommandsTest, UnreachableCoordinatorIsSixAndSaysWhatToDo) {
  const Result result = RunAlone({"--coordinator", "127.0.0.1:1", "get"});
  EXPECT_EQ(result.code, 6);
  EXPECT_THAT(result.err, HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(result.err, HasSubstr("--coordinator HOST:PORT"));
  EXPECT_EQ(RunAlone({"--coordinator", "127.0.0.1:1", "wait", "x"}).code, 6);
  EXPECT_EQ(RunAlone({"--coordinator", "127.0.0.1:1", "submit", kTiny}).code, 6);
}

TEST_F(CommandsTest, StatusCodesAreExitCodes) {
  for (const auto& [code, exit_code] :
       std::vector<std::pair<grpc::StatusCode, int>>{{grpc::StatusCode::NOT_FOUND, 3},
                                                     {grpc::StatusCode::ALREADY_EXISTS, 4},
                                                     {grpc::StatusCode::FAILED_PRECONDITION, 4},
                                                     {grpc::StatusCode::ABORTED, 4},
                                                     {grpc::StatusCode::UNAUTHENTICATED, 5},
                                                     {grpc::StatusCode::PERMISSION_DENIED, 5},
                                                     {grpc::StatusCode::UNAVAILABLE, 6},
                                                     {grpc::StatusCode::DEADLINE_EXCEEDED, 7},
                                                     {grpc::StatusCode::INVALID_ARGUMENT, 2},
                                                     {grpc::StatusCode::INTERNAL, 1}}) {
    GetFails(code);
    const Result result = Run({"get", "x"});
    EXPECT_EQ(result.code, exit_code) << code;
    EXPECT_THAT(result.err, HasSubstr("scripted"));
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(CommandsTest, WaitEndsAsTheJobDid) {
  for (const auto& [phase, exit_code] :
       std::vector<std::pair<v1::JobPhase, int>>{{v1::JOB_PHASE_SUCCEEDED, 0},
                                                 {v1::JOB_PHASE_FAILED, 100},
                                                 {v1::JOB_PHASE_CANCELLED, 103}}) {
    JobIs(phase);
    EXPECT_EQ(Run({"wait", "tiny"}).code, exit_code);
  }
  JobIs(v1::JOB_PHASE_RUNNING);
  EXPECT_EQ(Run({"wait", "tiny", "--timeout", "10ms"}).code, 101);
  GetFails(grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Run({"wait", "tiny"}).code, 102);
}

TEST_F(CommandsTest, WaitOutlivesACoordinatorsAbsence) {
  std::atomic<int> calls = 0;
  coordinator_.get = [&](const v1::GetJobRequest&, v1::Job* job) {
    const int call = ++calls;
    if (call > 1 && call < 8) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "away");
    Fill(job, call == 1 ? v1::JOB_PHASE_RUNNING : v1::JOB_PHASE_SUCCEEDED);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"wait", "tiny"}).code, 0);
  EXPECT_GE(calls, 8);
}

TEST_F(CommandsTest, SubmitSendsTheJobAndPrintsItsId) {
  v1::SubmitJobRequest sent;
  coordinator_.submit = [&](const v1::SubmitJobRequest& request, v1::Job* job) {
    sent = request;
    Fill(job, v1::JOB_PHASE_QUEUED);
    return grpc::Status::OK;
  };
  const Result result = Run({"submit", "-q", kTiny, "--set", "training.steps=7", "--set",
                             "optimizer.lr=0.5", "--request-id", "r1", "-n", "team"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "abc123\n");
  EXPECT_EQ(sent.request_id(), "r1");
  EXPECT_EQ(sent.metadata().namespace_(), "team");
  EXPECT_EQ(sent.spec().training().steps(), 7);
  EXPECT_EQ(sent.spec().optimizer().lr(), 0.5);
  EXPECT_EQ(sent.spec().data().paths(0), MEGA_SOURCE_DIR "/deploy/examples/data/shakespeare.txt");
  EXPECT_FALSE(sent.validate_only());

  EXPECT_EQ(Run({"submit", kTiny, "--dry-run"}).code, 0);
  EXPECT_TRUE(sent.validate_only());
  EXPECT_EQ(sent.request_id().size(), 36u) << "a UUID of its own";
}

// What is not stored has no id: the key is absent, not empty.
TEST_F(CommandsTest, ADryRunShowsTheJobThatWouldBe) {
  coordinator_.submit = [](const v1::SubmitJobRequest& request, v1::Job* job) {
    job->set_name("namespaces/default/jobs/tiny");
    *job->mutable_metadata() = request.metadata();
    return grpc::Status::OK;
  };
  const auto json = nlohmann::json::parse(Run({"submit", kTiny, "--dry-run", "-o", "json"}).out);
  EXPECT_EQ(json["name"], "namespaces/default/jobs/tiny");
  EXPECT_EQ(json["metadata"]["name"], "tiny");
  EXPECT_FALSE(json.contains("uid"));
  EXPECT_THAT(Run({"submit", kTiny, "--dry-run", "-o", "yaml"}).out,
              ::testing::AllOf(HasSubstr("name: namespaces/default/jobs/tiny\n"),
                               ::testing::Not(HasSubstr("\nuid:"))));
  EXPECT_EQ(Run({"submit", kTiny, "--dry-run", "-q"}).out, "");
}

TEST_F(CommandsTest, InvalidJobFileIsEightAndNothingIsSent) {
  bool called = false;
  coordinator_.submit = [&](const v1::SubmitJobRequest&, v1::Job*) {
    called = true;
    return grpc::Status::OK;
  };
  const std::string file = JobFile("apiVersion: mega/v1\nkind: TrainingJob\nspec: {modle: {}}\n");
  const Result result = Run({"submit", file});
  EXPECT_EQ(result.code, 8);
  EXPECT_THAT(result.err, HasSubstr(file + ":3:8: modle is not a key; did you mean model?"));
  EXPECT_THAT(result.err, HasSubstr("1 problem; nothing was submitted"));
  EXPECT_FALSE(called);
  EXPECT_EQ(Run({"submit", folder_ + "/none.yaml"}).code, 3);
}

TEST_F(CommandsTest, RefusalOfTheCoordinatorGetsTheLineOfItsKey) {
  coordinator_.submit = [](const v1::SubmitJobRequest&, v1::Job*) {
    return SpecInvalid("training.global_batch_size",
                       "training.global_batch_size is 8 but the cluster is odd");
  };
  const Result result = Run({"submit", kTiny});
  EXPECT_EQ(result.code, 8);
  EXPECT_THAT(result.err, HasSubstr(fmt::format("{}:18:5: training.global_batch_size is 8 but the "
                                                "cluster is odd",
                                                kTiny)));
}

TEST_F(CommandsTest, JsonIsTheApiMessage) {
  JobIs(v1::JOB_PHASE_RUNNING);
  const Result result = Run({"get", "tiny", "-o", "json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["phase"], "JOB_PHASE_RUNNING");
  EXPECT_EQ(json["metadata"]["name"], "tiny");
}

TEST_F(CommandsTest, ListsAllPages) {
  std::vector<std::string> parents;
  coordinator_.list = [&](const v1::ListJobsRequest& request, v1::ListJobsResponse* response) {
    parents.push_back(request.parent());
    Fill(response->add_jobs(), v1::JOB_PHASE_RUNNING);
    if (request.page_token().empty()) response->set_next_page_token("2");
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"get", "-o", "name"}).out, "tiny\ntiny\n");
  EXPECT_EQ(Run({"get", "-A", "--no-headers"}).code, 0);
  EXPECT_THAT(parents, ElementsAre("namespaces/default", "namespaces/default", "namespaces/-",
                                   "namespaces/-"));
}

TEST_F(CommandsTest, NamespaceNarrowsAHandle) {
  std::string asked;
  coordinator_.get = [&](const v1::GetJobRequest& request, v1::Job* job) {
    asked = request.name();
    Fill(job, v1::JOB_PHASE_RUNNING);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run({"get", "tiny"}).code, 0);
  EXPECT_EQ(asked, "tiny");
  EXPECT_EQ(Run({"get", "tiny", "-n", "team"}).code, 0);
  EXPECT_EQ(asked, "namespaces/team/jobs/tiny");
}

TEST_F(CommandsTest, StepsResumeWhereTheyBroke) {
  JobIs(v1::JOB_PHASE_RUNNING);
  std::atomic<int> calls = 0;
  coordinator_.steps = [&](const v1::StreamStepsRequest& request,
                           grpc::ServerWriter<v1::StepReport>* writer) {
    const int64_t last = ++calls == 1 ? 2 : 4;
    for (int64_t step = request.from_step(); step <= last; ++step) {
      v1::StepReport report;
      report.set_step(step);
      report.set_total_steps(4);
      writer->Write(report);
    }
    return last == 2 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone") : grpc::Status::OK;
  };
  const Result result = Run({"steps", "-f", "tiny", "-o", "json"});
  EXPECT_EQ(result.code, 0) << result.err;
  std::vector<int64_t> steps;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);)
    steps.push_back(nlohmann::json::parse(line)["step"]);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4));
}

TEST_F(CommandsTest, LogsResumeByOffsetAndNameTheirRanks) {
  coordinator_.get = [](const v1::GetJobRequest&, v1::Job* job) {
    Fill(job, v1::JOB_PHASE_SUCCEEDED);
    job->add_attempts()->mutable_plan()->set_world_size(2);
    job->mutable_attempts(0)->set_number(1);
    return grpc::Status::OK;
  };
  const std::vector<std::string> logs = {"zero\nzwei\n", "one\nno line end"};
  std::atomic<int> calls = 0;
  coordinator_.logs = [&](const v1::StreamLogsRequest& request,
                          grpc::ServerWriter<v1::LogChunk>* writer) {
    const bool broken = ++calls == 1;
    for (int64_t rank = 0; rank < 2; ++rank) {
      const auto seen = request.offsets().find(rank);
      const int64_t from = seen == request.offsets().end() ? 0 : seen->second;
      v1::LogChunk chunk;
      chunk.set_attempt(1);
      chunk.set_rank(rank);
      chunk.set_offset(from);
      chunk.set_data(logs[rank].substr(from, broken ? 6 : std::string::npos));
      writer->Write(chunk);
    }
    return broken ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone") : grpc::Status::OK;
  };
  const Result result = Run({"logs", "-f", "tiny"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "rank 0 | zero\nrank 1 | one\nrank 0 | zwei\nrank 1 | no line end\n");
}

// A connection that breaks while the job restarts: what attempt 1 still has to say is not cut off,
// and attempt 2 is shown from its first byte, whatever was seen of attempt 1.
TEST_F(CommandsTest, LogsShowTheNextAttemptWhole) {
  coordinator_.get = [](const v1::GetJobRequest&, v1::Job* job) {
    Fill(job, v1::JOB_PHASE_SUCCEEDED);
    for (int64_t number : {1, 2}) {
      v1::Attempt& attempt = *job->add_attempts();
      attempt.set_number(number);
      attempt.mutable_plan()->set_world_size(1);
    }
    return grpc::Status::OK;
  };
  const std::map<int64_t, std::string> logs = {{1, "first attempt\n"}, {2, "second attempt\n"}};
  std::atomic<int> calls = 0;
  coordinator_.logs = [&](const v1::StreamLogsRequest& request,
                          grpc::ServerWriter<v1::LogChunk>* writer) {
    const bool broken = ++calls == 1;
    v1::LogChunk chunk;
    // Attempt 2 was placed while the connection was away.
    chunk.set_attempt(request.attempt() != 0 ? request.attempt() : broken ? 1 : 2);
    const auto seen = request.offsets().find(0);
    const int64_t from = seen == request.offsets().end() ? 0 : seen->second;
    chunk.set_offset(from);
    chunk.set_data(logs.at(chunk.attempt()).substr(from, broken ? 6 : std::string::npos));
    writer->Write(chunk);
    return broken ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone") : grpc::Status::OK;
  };
  const Result result = Run({"logs", "-f", "tiny"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "first attempt\nsecond attempt\n");
}

grpc::Status NodeGone() {
  google::rpc::ErrorInfo info;
  info.set_reason("NODE_GONE");
  google::rpc::Status details;
  details.set_code(14);
  details.add_details()->PackFrom(info);
  return {grpc::StatusCode::UNAVAILABLE, "the log of rank 1 is on node 'w2'",
          details.SerializeAsString()};
}

// Case: the same attempt was asked for once a second for ever, and the exit code said that there
// was no coordinator.
TEST_F(CommandsTest, LogsOfANodeThatIsAwayEndWithTheReason) {
  coordinator_.get = [](const v1::GetJobRequest&, v1::Job* job) {
    Fill(job, v1::JOB_PHASE_SUCCEEDED);
    job->add_attempts()->mutable_plan()->set_world_size(2);
    job->mutable_attempts(0)->set_number(1);
    return grpc::Status::OK;
  };
  bool has_rank_0 = true;
  coordinator_.logs = [&](const v1::StreamLogsRequest&, grpc::ServerWriter<v1::LogChunk>* writer) {
    v1::LogChunk chunk;
    chunk.set_attempt(1);
    chunk.set_data("zero\n");
    if (has_rank_0) writer->Write(chunk);
    return NodeGone();
  };
  for (const bool has_any : {true, false}) {
    has_rank_0 = has_any;
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"logs", "tiny"}, {"logs", "-f", "tiny"}}) {
      const Result result = Run(words);
      EXPECT_EQ(result.code, 1) << result.err;
      EXPECT_EQ(result.out, has_any ? "rank 0 | zero\n" : "");
      EXPECT_THAT(result.err, HasSubstr("the log of rank 1 is on node 'w2'"));
    }
    EXPECT_EQ(Run({"logs", "-f", "--exit-status", "tiny"}).code, 0);
  }
}

// A node that is away for a moment, of an attempt that runs, and one of an attempt that is over.
TEST_F(CommandsTest, LogsWaitForANodeAsLongAsItsAttemptRuns) {
  std::atomic<int> calls = 0;
  coordinator_.get = [&](const v1::GetJobRequest&, v1::Job* job) {
    Fill(job, calls < 3 ? v1::JOB_PHASE_RUNNING : v1::JOB_PHASE_SUCCEEDED);
    for (int64_t number = 1; number <= (calls < 2 ? 1 : 2); ++number) {
      v1::Attempt& attempt = *job->add_attempts();
      attempt.set_number(number);
      attempt.mutable_plan()->set_world_size(1);
    }
    return grpc::Status::OK;
  };
  coordinator_.logs = [&](const v1::StreamLogsRequest& request,
                          grpc::ServerWriter<v1::LogChunk>* writer) {
    writer->SendInitialMetadata();  // from here on gRPC itself does not try again
    if (++calls <= 2) return NodeGone();
    v1::LogChunk chunk;
    chunk.set_attempt(request.attempt());
    chunk.set_data(fmt::format("attempt {}\n", request.attempt()));
    writer->Write(chunk);
    return grpc::Status::OK;
  };
  const Result result = Run({"logs", "-f", "tiny"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "attempt 2\n");
  EXPECT_THAT(result.err, AllOf(HasSubstr("waiting for it"), HasSubstr("the next attempt")));
}

TEST_F(CommandsTest, TextOfThePeerCannotDriveTheTerminal) {
  coordinator_.get = [](const v1::GetJobRequest&, v1::Job* job) {
    Fill(job, v1::JOB_PHASE_FAILED);
    job->set_reason("bad \x1b[2J end");
    return grpc::Status::OK;
  };
  EXPECT_THAT(Run({"get", "tiny", "-o", "wide"}).out, HasSubstr("bad ?[2J end"));
  EXPECT_THAT(Run({"wait", "tiny"}).out, HasSubstr("bad ?[2J end"));
}

TEST_F(CommandsTest, CtrlCIsOneHundredThirty) {
  JobIs(v1::JOB_PHASE_RUNNING);
  std::atomic<bool> asked = false;
  coordinator_.get = [&](const v1::GetJobRequest&, v1::Job* job) {
    Fill(job, v1::JOB_PHASE_RUNNING);
    asked = true;
    return grpc::Status::OK;
  };
  absl::StatusOr<Child> child = Start({"--coordinator", coordinator_.address(), "wait", "tiny"});
  ASSERT_TRUE(child.ok());
  const absl::Time deadline = absl::Now() + kDeadline;
  while (!asked && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
  kill(child->pid(), SIGINT);
  ASSERT_TRUE(child->WaitFor(kDeadline));
  EXPECT_EQ(WEXITSTATUS(*child->Poll()), 130);
}

TEST_F(CommandsTest, PlanWorksOffline) {
  const Result result = RunAlone({"plan", kTiny, "--nodes", "1", "--devices", "2", "-o", "json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["plan"]["world_size"], 2);
  EXPECT_EQ(json["plan"]["steps"], 20);
  EXPECT_THAT(RunAlone({"plan", kTiny}).out, HasSubstr("dp=2"));
  EXPECT_EQ(RunAlone({"plan", kTiny, "--devices", "1"}).code, 4);
  EXPECT_EQ(RunAlone({"plan", kTiny, "--set", "model.hidden_size=63"}).code, 8);
}

TEST_F(CommandsTest, AModelFolderIsReadHere) {
  const std::string job = JobFile(
      "apiVersion: mega/v1\nkind: TrainingJob\nmetadata: {name: llama}\nspec:\n"
      "  model: {hf: " MEGA_TEST_DATA
      "/models/llama, rope_theta: 9}\n"
      "  data: {paths: [text.txt], seq_length: 64}\n"
      "  training: {steps: 5, global_batch_size: 4}\n  optimizer: {lr: 1e-3}\n");
  EXPECT_EQ(RunAlone({"plan", job, "--devices", "1"}).code, 0);
  EXPECT_THAT(RunAlone({"plan", job, "--spec"}).out,
              ::testing::AllOf(HasSubstr("num_layers: 3\n"), HasSubstr("rope_theta: 9\n")));
  v1::SubmitJobRequest sent;
  coordinator_.submit = [&](const v1::SubmitJobRequest& request, v1::Job* job) {
    sent = request;
    Fill(job, v1::JOB_PHASE_QUEUED);
    return grpc::Status::OK;
  };
  ASSERT_EQ(Run({"submit", job}).code, 0);
  EXPECT_EQ(sent.spec().model().num_layers(), 3);
  EXPECT_EQ(sent.spec().model().rope_theta(), 9);

  const Result missing = RunAlone({"plan", job, "--set", "model.hf=nowhere"});
  EXPECT_EQ(missing.code, 8);
  EXPECT_THAT(missing.err, HasSubstr("/nowhere/config.json cannot be read"));
}

// Each number is within its own bounds; their product is what costs memory.
TEST_F(CommandsTest, PlanRefusesMoreDevicesThanAJobMayHave) {
  const Result file =
      RunAlone({"plan", kTiny, "--set", "parallelism.data_parallel_size=auto", "--set",
                "resources.nodes.desired=1048576", "--set", "resources.devices_per_node=4096"});
  EXPECT_EQ(file.code, 8);
  EXPECT_THAT(file.err, HasSubstr("a job has at most 65536 devices"));
  const Result flags = RunAlone({"plan", kTiny, "--nodes", "100000", "--devices", "4096"});
  EXPECT_EQ(flags.code, 2);
  EXPECT_THAT(flags.err, HasSubstr("100000 nodes of 4096 devices are 409600000 devices; a job has "
                                   "at most 65536; lower --nodes or --devices"));
}

TEST_F(CommandsTest, PlanPrintsAJobFileThatIsValid) {
  const Result spec = RunAlone({"plan", kTiny, "--spec"});
  ASSERT_EQ(spec.code, 0) << spec.err;
  const Result again = RunAlone({"plan", JobFile(spec.out), "--spec"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, spec.out);
}

// Beyond loopback and plain text, or with a certificate that cannot be read: nobody may be asked,
// and nobody needs to be.
TEST_F(CommandsTest, WhatNeedsNoCoordinatorWorksWhereNoneMayBeAsked) {
  const std::vector<std::string> remote = {"--coordinator", "head.example.org:7070"};
  for (const std::vector<std::string>& tls :
       {std::vector<std::string>{},
        {"--tls-ca", "/no/ca", "--tls-cert", "/no/c", "--tls-key", "/no/k"}}) {
    const auto run = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), tls.begin(), tls.end());
      arguments.insert(arguments.begin(), remote.begin(), remote.end());
      return RunAlone(arguments);
    };
    const char* why = tls.empty() ? "beyond loopback" : "/no/";
    const Result version = run({"version"});
    EXPECT_EQ(version.code, 0) << version.err;
    EXPECT_TRUE(version.out.starts_with("megactl ")) << version.out;
    EXPECT_THAT(version.out, HasSubstr("not asked (head.example.org:7070, from --coordinator)"));
    EXPECT_THAT(version.out, HasSubstr(why));
    EXPECT_EQ(run({"plan", kTiny, "--spec"}).code, 0);
    EXPECT_EQ(run({"plan", kTiny, "--nodes", "1"}).code, 0);
    EXPECT_EQ(run({"plan", kTiny, "--devices", "2"}).code, 0);
    const int code = tls.empty() ? 2 : 3;  // wrong usage, or no such file
    EXPECT_EQ(run({"plan", kTiny}).code, code);
    const Result get = run({"get"});
    EXPECT_EQ(get.code, code);
    EXPECT_THAT(get.err, HasSubstr(why));
  }
}

TEST_F(CommandsTest, ConfigurationIsFlagThenEnvironmentThenFile) {
  std::filesystem::create_directories(folder_ + "/megactl");
  std::ofstream(folder_ + "/megactl/config.yaml")
      << "coordinator: " << coordinator_.address() << "\n";
  EXPECT_EQ(RunAlone({"nodes", "-o", "name"}).out, "node-1\n");
  setenv("MEGACTL_COORDINATOR", "127.0.0.1:1", 1);
  EXPECT_EQ(RunAlone({"nodes"}).code, 6);
  EXPECT_EQ(Run({"nodes"}).code, 0);
  unsetenv("MEGACTL_COORDINATOR");
  std::ofstream(folder_ + "/megactl/config.yaml") << "coordinatr: x\n";
  const Result bad = RunAlone({"nodes"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("config.yaml:1: 'coordinatr' is not a key"));
}

TEST_F(CommandsTest, AnAuthorityThatCannotBeMadeWholeIsNotMade) {
  const std::string pki = folder_ + "/pki/";
  const Result bad = RunAlone({"pki", "init", pki, "--host", "no host"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("'no host' is neither"));
  EXPECT_EQ(bad.out, "");
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_THAT(entry.path().string(), ::testing::Not(HasSubstr("pki"))) << "left behind";
  }
  std::filesystem::create_directory(pki);  // an empty one is as good as none
  const Result good = RunAlone({"pki", "init", pki, "--host", "head"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_TRUE(std::filesystem::exists(pki + "user-admin.key"));
  EXPECT_EQ(RunAlone({"pki", "init", pki}).code, 4);
}

TEST_F(CommandsTest, QueueShowsPositionReasonAndStart) {
  std::string parent;
  coordinator_.queue = [&](const v1::ListQueueRequest& request, v1::ListQueueResponse* response) {
    parent = request.parent();
    v1::QueueEntry& entry = *response->add_entries();
    entry.mutable_metadata()->set_name("tiny");
    entry.set_position(1);
    entry.set_priority(7);
    entry.set_devices(16);
    entry.set_reason("waiting: 2 of lower priority save and give way");
    return grpc::Status::OK;
  };
  const Result table = Run({"queue"});
  EXPECT_THAT(table.out, HasSubstr("2 of lower priority save"));
  EXPECT_THAT(table.out, HasSubstr("16"));
  EXPECT_EQ(parent, "namespaces/-");
  EXPECT_EQ(nlohmann::json::parse(
                Run({"queue", "-n", "team", "-o", "json"}).out)["entries"][0]["priority"],
            7);
  EXPECT_EQ(parent, "namespaces/team");
}

TEST_F(CommandsTest, SettingOneLimitOfANamespaceLeavesTheOthers) {
  coordinator_.namespaces = [](const v1::ListNamespacesRequest&,
                               v1::ListNamespacesResponse* response) {
    v1::Namespace& team = *response->add_namespaces();
    team.set_name("team");
    team.set_max_jobs(5);
    return grpc::Status::OK;
  };
  coordinator_.set_namespace = [](const v1::UpdateNamespaceRequest& request, v1::Namespace* set) {
    *set = request.namespace_();
    return grpc::Status::OK;
  };
  const auto set = nlohmann::json::parse(
      Run({"namespaces", "set", "team", "--max-devices", "8", "--max-priority", "-2", "-o", "json"})
          .out);
  EXPECT_EQ(set["max_devices"], 8);
  EXPECT_EQ(set["max_jobs"], 5);
  EXPECT_EQ(set["max_priority"], -2);
  EXPECT_THAT(Run({"namespaces", "list"}).out, HasSubstr("team"));
}

TEST_F(CommandsTest, DrainSendsItsReasonAndGrace) {
  v1::DrainNodeRequest asked;
  coordinator_.drain = [&](const v1::DrainNodeRequest& request, v1::Node* node) {
    asked = request;
    node->set_name(request.name());
    node->set_draining(true);
    return grpc::Status::OK;
  };
  EXPECT_THAT(Run({"drain", "node-1", "--reason", "loud fan", "--grace", "5"}).out,
              HasSubstr("node node-1 is drained"));
  EXPECT_EQ(asked.reason(), "loud fan");
  EXPECT_EQ(asked.grace().seconds(), 5);
  EXPECT_TRUE(nlohmann::json::parse(Run({"drain", "node-1", "-o", "json"}).out)["draining"]);
}

// Wherever there is -o; a stream is a document each.
TEST_F(CommandsTest, YamlIsAnOutputOfEveryCommand) {
  coordinator_.get = [](const v1::GetJobRequest&, v1::Job* job) {
    Fill(job, v1::JOB_PHASE_SUCCEEDED);
    for (int64_t step : {10, 20}) job->add_checkpoints()->set_step(step);
    return grpc::Status::OK;
  };
  coordinator_.steps = [](const v1::StreamStepsRequest&,
                          grpc::ServerWriter<v1::StepReport>* writer) {
    v1::StepReport report;
    for (int64_t step : {1, 2}) report.set_step(step), writer->Write(report);
    return grpc::Status::OK;
  };
  coordinator_.events = [](const v1::WatchEventsRequest&,
                           grpc::ServerWriter<v1::JobEvent>* writer) {
    v1::JobEvent event;
    for (int64_t revision : {1, 2}) event.set_revision(revision), writer->Write(event);
    return grpc::Status::OK;
  };
  const auto yaml = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "yaml"});
    const Result result = Run(arguments);
    EXPECT_EQ(result.err, "") << arguments[0];
    return result.out;
  };
  const auto documents = [&](const std::vector<std::string>& arguments) {
    return std::vector<std::string>(absl::StrSplit(yaml(arguments), "---\n"));
  };
  EXPECT_THAT(documents({"steps", "tiny"}),
              ElementsAre("", HasSubstr("step: 1\n"), HasSubstr("step: 2\n")));
  EXPECT_THAT(documents({"events", "tiny"}),
              ElementsAre("", HasSubstr("revision: 1\n"), HasSubstr("revision: 2\n")));
  EXPECT_THAT(documents({"checkpoints", "list", "tiny"}),
              ElementsAre("", HasSubstr("step: 10\n"), HasSubstr("step: 20\n")));
  EXPECT_THAT(yaml({"version"}), HasSubstr("coordinator:\n  address: "));
  EXPECT_THAT(yaml({"doctor"}),
              HasSubstr("checks:\n  -\n    name: coordinator\n    verdict: ok\n"));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"whoami"}, {"checkpoints", "verify"}}) {
    std::vector<std::string> arguments = command;
    arguments.push_back("--help");
    EXPECT_THAT(RunAlone(arguments).out, HasSubstr("json, yaml")) << command.back();
  }
}

TEST_F(CommandsTest, SmallCommandsWork) {
  EXPECT_THAT(Run({"version"}).out, HasSubstr("coordinator 9.9.9"));
  EXPECT_EQ(nlohmann::json::parse(Run({"version", "-o", "json"}).out)["coordinator"]["version"],
            "9.9.9");
  EXPECT_TRUE(nlohmann::json::parse(RunAlone({"schema"}).out).contains("properties"));
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_THAT(RunAlone({"completion", shell}).out, HasSubstr("run submit get describe"));
  EXPECT_EQ(std::system((std::string(MEGA_BIN_DIR "/megactl completion bash | bash -n")).c_str()),
            0);
}

}  // namespace
}  // namespace mega::cli
