// Text that comes from outside: addresses that are none, and control characters, which must not
// reach a terminal.
#include <gmock/gmock.h>

#include "fmt/core.h"
#include "tests/cli/commands/commands_fixture.h"

namespace mega::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CommandsTest, AnAddressThatIsNoneIsRefusedWhereverItIsGiven) {
  for (const std::string address : {"127.0.0.1:99999", "127.0.0.1:72606", "127.0.0.1:1\x1b[31m",
                                    "127.0.0.1:0", "nowhere", "127.0.0.1:7070x", "unix:/tmp/x:1"}) {
    const Result flag = RunAlone({"--coordinator", address, "nodes"});
    EXPECT_EQ(flag.code, 2) << address;
    EXPECT_THAT(flag.err, AllOf(HasSubstr("coordinator (from --coordinator) is '"),
                                HasSubstr("write HOST:PORT"), Not(HasSubstr("\x1b"))));
    setenv("MEGACTL_COORDINATOR", address.c_str(), 1);
    const Result environment = RunAlone({"nodes"});
    unsetenv("MEGACTL_COORDINATOR");
    EXPECT_EQ(environment.code, 2) << address;
    EXPECT_THAT(environment.err, HasSubstr("(from MEGACTL_COORDINATOR)"));
  }
  std::filesystem::create_directories(folder_ + "/megactl");
  std::ofstream(folder_ + "/megactl/config.yaml") << "coordinator: \"127.0.0.1:\\e[31m\"\n";
  const Result file = RunAlone({"nodes"});
  EXPECT_EQ(file.code, 2);
  EXPECT_THAT(file.err,
              AllOf(HasSubstr("config.yaml) is '127.0.0.1:?[31m'"), Not(HasSubstr("\x1b"))));
}

TEST_F(CommandsTest, NoKeyOfAJobFileDrivesTheTerminal) {
  const std::string start = "apiVersion: mega/v1\nkind: TrainingJob\nmetadata: {name: t}\nspec:\n";
  for (const std::string& text :
       {start + "  \"\\e[31mfoo\\e[2J\": 1\n", start + "  training: {\"a\\nb\\u009b\": 1}\n",
        start + "  training: {\"a\\e\": 1, \"a\\e\": 2}\n",
        start + "  training: {steps: \"\\e[2J\"}\n", "\"\\e[2J\": 1\n" + start,
        std::string("apiVersion: \"\\e[2J\\r\"\n"), std::string("kind: {\"\\e\": 1}\n"),
        start + "  training: !\xC2\x9B" + "x 1\n"}) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"plan"}, {"submit", "--dry-run"}}) {
      std::vector<std::string> arguments = words;
      arguments.push_back(JobFile(text));
      const Result result = Run(arguments);
      EXPECT_EQ(result.code, 8) << result.err;
      EXPECT_THAT(result.err, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\xC2\x9B")),
                                    Not(HasSubstr("\r")), Not(HasSubstr("a\nb"))));
    }
  }
  EXPECT_THAT(Run({"plan", "no\x1b[2J.yaml"}).err, HasSubstr("no?[2J.yaml"));
  EXPECT_THAT(Run({"plan", JobFile(start), "--set", "a\x1b[2J=1"}).err, HasSubstr("a?[2J"));
}

TEST_F(CommandsTest, NamesOfThePeerCannotDriveTheTerminal) {
  const auto fill = [](v1::Job* job) {
    Fill(job, v1::JOB_PHASE_RUNNING);
    job->set_uid("abc\x1b[2J");
    job->mutable_metadata()->set_name("tiny\x1b[2J");
    auto& rank = *job->add_attempts()->add_ranks();
    rank.set_node("node\x1b[2J");
    auto& record = *job->add_recoveries();
    record.set_rung("\x1b[2J");
    job->add_recovery_budgets()->set_key("\x1b[2J");
  };
  coordinator_.get = [&](const v1::GetJobRequest&, v1::Job* job) {
    fill(job);
    return grpc::Status::OK;
  };
  coordinator_.submit = [&](const v1::SubmitJobRequest&, v1::Job* job) {
    fill(job);
    return grpc::Status::OK;
  };
  coordinator_.cancel = [&](const v1::CancelJobRequest&, v1::Job* job) {
    fill(job);
    return grpc::Status::OK;
  };
  coordinator_.restart = [&](const v1::RestartJobRequest&, v1::Job* job) {
    fill(job);
    return grpc::Status::OK;
  };
  const std::string tiny = MEGA_SOURCE_DIR "/deploy/examples/tiny.yaml";
  for (const std::vector<std::string>& words : {std::vector<std::string>{"describe", "tiny"},
                                                {"submit", tiny},
                                                {"submit", tiny, "-q"},
                                                {"submit", tiny, "-o", "name"},
                                                {"cancel", "tiny"},
                                                {"restart", "tiny"}}) {
    const Result result = Run(words);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, AllOf(HasSubstr("?[2J"), Not(HasSubstr("\x1b")))) << words[0];
  }
}

}  // namespace
}  // namespace mega::cli
