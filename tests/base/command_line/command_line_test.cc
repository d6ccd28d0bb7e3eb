#include "base/command_line/command_line.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/command_line/parse.h"

namespace mega {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A program as ours are: commands, one with commands of its own.
struct Sample {
  explicit Sample(bool needs_command = true) {
    if (needs_command) program.RequireCommand();
    program.AddOption("-n", name_space);
    get.Alias("ls");
    get.Footer("That is all.");
    get.AddOption("job", job);
    checkpoints.RequireCommand();
  }
  Outcome Run(const std::vector<std::string>& words) { return Parse(program, words); }

  Program program{"program", "What it does", "program get"};
  Command get = program.AddCommand("get", "Gets\nand more", "program get x");
  Command checkpoints = program.AddCommand("checkpoints", "Some", "program checkpoints list");
  Command list = checkpoints.AddCommand("list", "Lists", "program checkpoints list");
  std::string name_space, job;
};

TEST(Program, GoesOnWhenAllIsWell) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"get"}, {"ls", "job"}, {"checkpoints", "list"}}) {
    const Outcome outcome = Sample().Run(words);
    EXPECT_FALSE(outcome.code.has_value());
    EXPECT_THAT(outcome.err, IsEmpty());
  }
  EXPECT_FALSE(Sample(/*needs_command=*/false).Run({}).code.has_value());
}

TEST(Program, AnOptionThatDoesNotExistIsNamed) {
  for (const auto& [words, told] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--bogus"}, "'--bogus' is not an option of program\n"},
           {{"--hepl"}, "'--hepl' is not an option of program; did you mean --help?"},
           {{"get", "--bogus=3"}, "'--bogus' is not an option of program get\n"},
           {{"checkpoints", "--bogus", "list"}, "'--bogus' is not an option of program check"},
           {{"checkpoints", "-x"}, "'-x' is not an option of program checkpoints\n"},
           {{"get", "--\x1b[2J"}, "'--?[2J' is not an option of program get\n"},
           {{"get\x1b[2J"}, "'get?[2J' is not a command of program"}}) {
    const Outcome outcome = Sample().Run(words);
    EXPECT_EQ(outcome.code, kExitBadUsage);
    EXPECT_THAT(outcome.err, HasSubstr(told));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
  EXPECT_THAT(Sample().Run({}).err, HasSubstr("A subcommand is required"));
}

TEST(Program, AWordThatIsNotUtf8IsRefusedAndNamed) {
  for (const auto& [words, told] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"get", "\xFF\xFE"}, "argument 2 is not UTF-8: '??'\n"},
           {{"-n", "a\xFF", "get"}, "argument 2 (after -n) is not UTF-8: 'a?'\n"},
           {{"get", "--help", "--bogus=\xFF"}, "argument 3 (after --help) is not UTF-8"}}) {
    const Outcome outcome = Sample().Run(words);
    EXPECT_EQ(outcome.code, kExitBadUsage);
    EXPECT_THAT(outcome.err, HasSubstr(told));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
  EXPECT_FALSE(Sample().Run({"get", "jöb"}).code.has_value());
}

TEST(Program, HelpEndsZeroOnStandardOutput) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"},
                                                {"get", "--help"},
                                                {"checkpoints", "--help"},
                                                {"get", "job", "--help"}}) {
    const Outcome outcome = Sample().Run(words);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("Usage"));
    EXPECT_THAT(outcome.err, IsEmpty());
  }
}

TEST(Program, HelpBeginsWithTheExampleAndListsFirstLines) {
  EXPECT_THAT(Sample().Run({"--help"}).out,
              AllOf(StartsWith("Example: program get\nWhat it does\n\nUsage: program "),
                    HasSubstr("\n  get, ls                     Gets\n  checkpoints "),
                    Not(HasSubstr("program get x"))));
  EXPECT_THAT(Sample().Run({"get", "--help"}).out,
              AllOf(StartsWith("Example: program get x\nGets\nand more\n\nUsage: program get "),
                    EndsWith("\nThat is all.\n")));
}

TEST(Program, SaysItsVersion) {
  Program program("program", "What it does", "program");
  program.AddVersion("1.2.3");
  const Outcome outcome = Parse(program, {"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "1.2.3\n");
}

TEST(Program, AnUnknownCommandIsNamedAndEndsTwoEvenWithHelp) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"gett"}, {"gett", "--help"}, {"-n", "x", "gett", "job"}}) {
    for (const bool needs_command : {true, false}) {
      const Outcome outcome = Sample(needs_command).Run(words);
      EXPECT_EQ(outcome.code, kExitBadUsage);
      EXPECT_EQ(outcome.err,
                "'gett' is not a command of program; did you mean program get?\n"
                "program --help lists them\n");
      EXPECT_THAT(outcome.out, IsEmpty());
    }
  }
  EXPECT_EQ(Sample().Run({"frobnicate"}).err,
            "'frobnicate' is not a command of program\nprogram --help lists them\n");
}

TEST(Program, SoIsOneOfACommand) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"checkpoints", "lsit"},
                                                {"checkpoints", "lsit", "--help"},
                                                {"checkpoints", "--help", "lsit"}}) {
    const Outcome outcome = Sample().Run(words);
    EXPECT_EQ(outcome.code, kExitBadUsage);
    EXPECT_THAT(outcome.err,
                HasSubstr("'lsit' is not a command of program checkpoints; did you mean program "
                          "checkpoints list?"));
  }
}

TEST(Program, OtherMistakesEndTwoWithTheirOwnWords) {
  EXPECT_EQ(Sample().Run({}).code, kExitBadUsage);
  EXPECT_EQ(Sample().Run({"checkpoints"}).code, kExitBadUsage);
  const Outcome extra = Sample().Run({"get", "a", "b"});
  EXPECT_EQ(extra.code, kExitBadUsage);
  EXPECT_THAT(extra.err, HasSubstr("b"));
  EXPECT_THAT(Sample().Run({"--frob", "get"}).err, HasSubstr("--frob"));
  EXPECT_EQ(Sample().Run({"checkpoints", "list", "get"}).code, kExitBadUsage);
}

TEST(Command, KnowsWhetherItWasChosen) {
  Sample sample;
  EXPECT_FALSE(sample.Run({"checkpoints", "list"}).code.has_value());
  EXPECT_TRUE(sample.checkpoints.WasChosen());
  EXPECT_TRUE(sample.list.WasChosen());
  EXPECT_FALSE(sample.get.WasChosen());
}

TEST(Command, NamesItsCommandsInTheirOrder) {
  EXPECT_THAT(Sample().program.CommandNames(), ElementsAre("get", "checkpoints"));
  EXPECT_THAT(Sample().checkpoints.CommandNames(), ElementsAre("list"));
  EXPECT_THAT(Sample().list.CommandNames(), IsEmpty());
}

TEST(Command, OptionsOfThoseAboveMayFollowIt) {
  Sample sample;
  EXPECT_FALSE(sample.Run({"checkpoints", "list", "-n", "x"}).code.has_value());
  EXPECT_EQ(sample.name_space, "x");
}

TEST(Command, RunsWhenAllIsWellAndGivesTheExitCode) {
  Sample sample;
  int runs = 0;
  sample.get.OnRun([&] {
    ++runs;
    EXPECT_EQ(sample.job, "x");
    return 7;
  });
  EXPECT_EQ(sample.Run({"get", "x", "y"}).code, kExitBadUsage);
  EXPECT_EQ(sample.Run({"get", "--help"}).code, 0);
  EXPECT_FALSE(sample.Run({"checkpoints", "list"}).code.has_value());
  EXPECT_EQ(runs, 0);
  const Outcome outcome = sample.Run({"get", "x"});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.out + outcome.err, "");
  EXPECT_EQ(runs, 1);
}

TEST(Command, PassesOnAllWordsAfterItsName) {
  Sample sample;
  std::vector<std::string> passed;
  Command data = sample.program.AddCommand("data", "Elsewhere", "program data build");
  data.PassOn([&](const std::vector<std::string>& words) {
    passed = words;
    return 3;
  });
  EXPECT_EQ(sample.Run({"-n", "x", "data", "build", "--help", "-n", "y", "get"}).code, 3);
  EXPECT_THAT(passed, ElementsAre("build", "--help", "-n", "y", "get"));
  EXPECT_EQ(sample.name_space, "x");
}

TEST(Command, ReadsEveryKindOfTarget) {
  Program program("program", "What it does", "program");
  std::string text;
  int small = 0;
  int64_t whole = 0;
  uint64_t unsigned_whole = 0;
  double real = 0;
  std::optional<std::string> maybe_text, no_text;
  std::optional<int64_t> maybe_whole, no_whole;
  std::vector<std::string> texts, words;
  std::vector<int> smalls;
  std::vector<int64_t> wholes;
  bool flag = false, no_flag = false;
  std::string taken;
  program.AddOption("--text", text);
  program.AddOption("--small", small);
  program.AddOption("--whole", whole);
  program.AddOption("--unsigned", unsigned_whole);
  program.AddOption("--real", real);
  program.AddOption("--maybe-text", maybe_text);
  program.AddOption("--no-text", no_text);
  program.AddOption("--maybe-whole", maybe_whole);
  program.AddOption("--no-whole", no_whole);
  program.AddOption("--texts", texts);
  program.AddOption("--smalls", smalls);
  program.AddOption("--wholes", wholes);
  program.AddOption("words", words);
  program.AddFlag("-f,--flag", flag, "A flag");
  program.AddFlag("--no-flag", no_flag, "Another");
  program.AddOption(
      "--taken", [&](const std::string& value) { taken = value; }, "Taken");
  const Outcome outcome = Parse(program, {"word",
                                          "--text",
                                          "a b",
                                          "--small",
                                          "-2147483648",
                                          "--whole",
                                          "-9223372036854775808",
                                          "--unsigned",
                                          "18446744073709551615",
                                          "--real",
                                          "1e-3",
                                          "--maybe-text",
                                          "",
                                          "--maybe-whole",
                                          "010",
                                          "--texts",
                                          "a",
                                          "b",
                                          "--texts",
                                          "c",
                                          "--smalls",
                                          "1",
                                          "-2",
                                          "--wholes",
                                          "9223372036854775807",
                                          "-f",
                                          "--taken",
                                          "it"});
  EXPECT_FALSE(outcome.code.has_value()) << outcome.err;
  EXPECT_EQ(text, "a b");
  EXPECT_EQ(small, INT32_MIN);
  EXPECT_EQ(whole, INT64_MIN);
  EXPECT_EQ(unsigned_whole, UINT64_MAX);
  EXPECT_EQ(real, 1e-3);
  EXPECT_EQ(maybe_text, "");
  EXPECT_EQ(maybe_whole, 10);  // decimal, whatever it begins with
  EXPECT_FALSE(no_text.has_value() || no_whole.has_value());
  EXPECT_THAT(texts, ElementsAre("a", "b", "c"));
  EXPECT_THAT(smalls, ElementsAre(1, -2));
  EXPECT_THAT(wholes, ElementsAre(INT64_MAX));
  EXPECT_THAT(words, ElementsAre("word"));
  EXPECT_TRUE(flag);
  EXPECT_FALSE(no_flag);
  EXPECT_EQ(taken, "it");
}

TEST(AddLogLevel, KnowsFourWordsAndIsInfoWithoutOne) {
  const auto parsed = [](const std::vector<std::string>& words) -> std::optional<log::Level> {
    Program program("program", "What it does", "program");
    log::Level level = log::Level::kError;
    AddLogLevel(program, level);
    if (Parse(program, words).code.has_value()) return std::nullopt;
    return level;
  };
  EXPECT_EQ(parsed({}), log::Level::kInfo);
  EXPECT_EQ(parsed({"--log-level", "debug"}), log::Level::kDebug);
  EXPECT_EQ(parsed({"--log-level", "info"}), log::Level::kInfo);
  EXPECT_EQ(parsed({"--log-level", "warn"}), log::Level::kWarn);
  EXPECT_EQ(parsed({"--log-level", "error"}), log::Level::kError);
  EXPECT_FALSE(parsed({"--log-level", "loud"}).has_value());
}

}  // namespace
}  // namespace mega
