#include "base/command_line/command_line.h"

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mega {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Outcome {
  std::optional<int> code;
  std::string out;
  std::string err;
};

// A program as ours are: commands, one with commands of its own, options that fall through.
Outcome RunProgram(std::vector<std::string> words, bool needs_command = true) {
  CLI::App app("What it does");
  app.fallthrough();
  app.require_subcommand(needs_command ? 1 : 0, 1);
  std::string name_space, job;
  app.add_option("-n", name_space);
  app.add_subcommand("get")->alias("ls")->add_option("job", job);
  CLI::App* checkpoints = app.add_subcommand("checkpoints");
  checkpoints->require_subcommand(1);
  checkpoints->add_subcommand("list");
  words.insert(words.begin(), "/usr/bin/program");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = ParseArguments(app, static_cast<int>(argv.size()), argv.data());
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(ParseArguments, GoesOnWhenAllIsWell) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"get"}, {"ls", "job"}, {"checkpoints", "list", "-n", "x"}}) {
    const Outcome outcome = RunProgram(words);
    EXPECT_FALSE(outcome.code.has_value());
    EXPECT_THAT(outcome.err, IsEmpty());
  }
  EXPECT_FALSE(RunProgram({}, /*needs_command=*/false).code.has_value());
}

TEST(ParseArguments, HelpEndsZeroOnStandardOutput) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"},
                                                {"get", "--help"},
                                                {"checkpoints", "--help"},
                                                {"get", "job", "--help"}}) {
    const Outcome outcome = RunProgram(words);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("Usage"));
    EXPECT_THAT(outcome.err, IsEmpty());
  }
}

TEST(ParseArguments, AnUnknownCommandIsNamedAndEndsTwoEvenWithHelp) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"gett"}, {"gett", "--help"}, {"-n", "x", "gett", "job"}}) {
    for (const bool needs_command : {true, false}) {
      const Outcome outcome = RunProgram(words, needs_command);
      EXPECT_EQ(outcome.code, kExitBadUsage);
      EXPECT_EQ(outcome.err,
                "'gett' is not a command of program; did you mean program get?\n"
                "program --help lists them\n");
      EXPECT_THAT(outcome.out, IsEmpty());
    }
  }
  EXPECT_THAT(RunProgram({"frobnicate"}).err,
              "'frobnicate' is not a command of program\nprogram --help lists them\n");
}

TEST(ParseArguments, SoIsOneOfACommand) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"checkpoints", "lsit"},
                                                {"checkpoints", "lsit", "--help"},
                                                {"checkpoints", "--help", "lsit"}}) {
    const Outcome outcome = RunProgram(words);
    EXPECT_EQ(outcome.code, kExitBadUsage);
    EXPECT_THAT(outcome.err,
                HasSubstr("'lsit' is not a command of program checkpoints; did you mean program "
                          "checkpoints list?"));
  }
}

TEST(AtLeast, RefusesWhatIsLessOrNoWholeNumberWithTheRange) {
  CLI::App app;
  int64_t count = 0;
  app.add_option("--count", count)->check(AtLeast(1));
  for (const char* text : {"0", "-1", "1.5", "many", "", "99999999999999999999"}) {
    try {
      app.parse(std::vector<std::string>{text, "--count"});  // CLI11 wants them reversed
      ADD_FAILURE() << text;
    } catch (const CLI::ParseError& error) {
      EXPECT_EQ(std::string(error.what()),
                fmt::format("--count: '{}' is not a whole number of at least 1", text));
    }
  }
  app.parse(std::vector<std::string>{"9223372036854775807", "--count"});
  EXPECT_EQ(count, INT64_MAX);
}

TEST(AddLogLevel, KnowsFourWordsAndIsInfoWithoutOne) {
  const auto parsed = [](std::vector<std::string> reversed) {
    CLI::App app;
    log::Level level = log::Level::kError;
    AddLogLevel(app, level);
    app.parse(std::move(reversed));
    return level;
  };
  EXPECT_EQ(parsed({}), log::Level::kInfo);
  EXPECT_EQ(parsed({"debug", "--log-level"}), log::Level::kDebug);
  EXPECT_EQ(parsed({"info", "--log-level"}), log::Level::kInfo);
  EXPECT_EQ(parsed({"warn", "--log-level"}), log::Level::kWarn);
  EXPECT_EQ(parsed({"error", "--log-level"}), log::Level::kError);
  EXPECT_THROW(parsed({"loud", "--log-level"}), CLI::ParseError);
}

TEST(ParseArguments, OtherMistakesEndTwoWithTheirOwnWords) {
  EXPECT_EQ(RunProgram({}).code, kExitBadUsage);
  const Outcome extra = RunProgram({"get", "a", "b"});
  EXPECT_EQ(extra.code, kExitBadUsage);
  EXPECT_THAT(extra.err, HasSubstr("b"));
  EXPECT_THAT(RunProgram({"--frob", "get"}).err, HasSubstr("--frob"));
}

}  // namespace
}  // namespace mega
