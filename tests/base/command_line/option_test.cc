#include "base/command_line/command_line.h"

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/command_line/parse.h"

namespace mega {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// One option, declared by `declare`, and what comes of `words`.
template <typename T>
Outcome RunOption(
    T& target, const std::vector<std::string>& words,
    const std::function<void(Option)>& declare = [](Option) {}) {
  Program program("program", "What it does", "program");
  declare(program.AddOption("-v,--value", target, "What it is"));
  return Parse(program, words);
}

std::string HelpOf(const std::function<void(Program&)>& declare) {
  Program program("program", "What it does", "program -x");
  declare(program);
  return Parse(program, {"--help"}).out;
}

template <typename T>
void ExpectRefused(const std::vector<const char*>& values, const std::string& wanted) {
  for (const char* value : values) {
    T target{};
    const Outcome outcome = RunOption(target, {"--value", value});
    EXPECT_EQ(outcome.code, kExitBadUsage) << value;
    EXPECT_THAT(outcome.err, StartsWith(fmt::format("--value: '{}' is not a {}\n", value, wanted)));
    EXPECT_EQ(target, T{});
  }
}

TEST(Option, RefusesNumbersThatTheTargetCannotHold) {
  const std::string small = "whole number from -2147483648 to 2147483647";
  ExpectRefused<int>({"2147483648", "-2147483649", "0x10", "1.5", "many", ""}, small);
  ExpectRefused<std::vector<int>>({"2147483648", "many", ""}, small);
  const std::string whole = "whole number from -9223372036854775808 to 9223372036854775807";
  const std::vector<const char*> bad = {"9223372036854775808", "-9223372036854775809", "1e3", "x",
                                        ""};
  ExpectRefused<int64_t>(bad, whole);
  ExpectRefused<std::optional<int64_t>>(bad, whole);
  ExpectRefused<std::vector<int64_t>>(bad, whole);
  ExpectRefused<uint64_t>({"18446744073709551616", "-1", "x", ""},
                          "whole number from 0 to 18446744073709551615");
  ExpectRefused<double>({"1e999", "nan", "inf", "1,5", "hot", ""}, "number");
}

TEST(Option, IsGivenOnceUnlessItIsAList) {
  std::string text;
  EXPECT_EQ(RunOption(text, {"-v", "a", "-v", "b"}).code, kExitBadUsage);
  EXPECT_EQ(RunOption(text, {"-v"}).code, kExitBadUsage);
  std::vector<std::string> texts;
  EXPECT_FALSE(RunOption(texts, {"-v", "a", "-v", "b"}).code.has_value());
  EXPECT_THAT(texts, ElementsAre("a", "b"));
}

TEST(Option, RequiredIsMissedByName) {
  std::string text;
  const Outcome outcome = RunOption(text, {}, [](Option option) { option.Required(); });
  EXPECT_EQ(outcome.code, kExitBadUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--value is required"));
}

TEST(Option, OneOfNamesTheWords) {
  std::string text;
  const auto declare = [](Option option) { option.OneOf({"text", "json"}); };
  EXPECT_FALSE(RunOption(text, {"-v", "json"}, declare).code.has_value());
  const Outcome outcome = RunOption(text, {"-v", "xml"}, declare);
  EXPECT_EQ(outcome.code, kExitBadUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--value: xml not in {text,json}"));
  EXPECT_EQ(text, "json");
}

TEST(Option, AtLeastRefusesWhatIsLessOrNoWholeNumber) {
  int64_t count = 0;
  const auto declare = [](Option option) { option.AtLeast(1); };
  for (const char* text : {"0", "-1", "1.5", "many", "", "99999999999999999999"}) {
    const Outcome outcome = RunOption(count, {"--value", text}, declare);
    EXPECT_EQ(outcome.code, kExitBadUsage);
    EXPECT_THAT(outcome.err,
                HasSubstr(fmt::format("--value: '{}' is not a whole number of at least 1", text)));
  }
  EXPECT_FALSE(RunOption(count, {"-v", "9223372036854775807"}, declare).code.has_value());
  EXPECT_EQ(count, INT64_MAX);
}

TEST(Option, InRangeHoldsBothEndsAndNamesThem) {
  int64_t count = 0;
  const auto whole = [](Option option) { option.InRange(-3, int64_t{1} << 50); };
  for (const char* text : {"-3", "0", "1125899906842624"})
    EXPECT_FALSE(RunOption(count, {"-v", text}, whole).code.has_value());
  EXPECT_EQ(count, int64_t{1} << 50);
  for (const char* text : {"-4", "1125899906842625", "0x1", "1.5", "many", "9e9"}) {
    const Outcome outcome = RunOption(count, {"-v", text}, whole);
    EXPECT_EQ(outcome.code, kExitBadUsage);
    EXPECT_THAT(outcome.err, HasSubstr(fmt::format(
                                 "--value: Value {} not in range -3 to 1125899906842624", text)));
  }
  double share = 0;
  const auto real = [](Option option) { option.InRange(0.5, 1.0); };
  for (const char* text : {"0.5", "1"})
    EXPECT_FALSE(RunOption(share, {"-v", text}, real).code.has_value());
  for (const char* text : {"0.49", "1.01", "nan", "hot"}) {
    const Outcome outcome = RunOption(share, {"-v", text}, real);
    EXPECT_EQ(outcome.code, kExitBadUsage);
    EXPECT_THAT(outcome.err, HasSubstr("not in range 0.500000 to 1.000000"));
  }
}

TEST(Option, CheckSaysWhatIsWrongBeforeTheTargetIsWritten) {
  std::string text;
  const auto declare = [](Option option) {
    option.Check([](const std::string& value) {
      return value == "good" ? "" : "'" + value + "' is not good";
    });
  };
  const Outcome outcome = RunOption(text, {"-v", "bad"}, declare);
  EXPECT_EQ(outcome.code, kExitBadUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--value: 'bad' is not good"));
  EXPECT_EQ(text, "");
  EXPECT_FALSE(RunOption(text, {"-v", "good"}, declare).code.has_value());
}

TEST(Option, ExcludesAnother) {
  const auto run = [](const std::vector<std::string>& words) {
    Program program("program", "What it does", "program");
    bool any = false;
    int64_t most = 0;
    Option option = program.AddOption("--most", most);
    program.AddFlag("--any", any, "All").Excludes(option);
    return Parse(program, words);
  };
  EXPECT_FALSE(run({"--most", "1"}).code.has_value());
  EXPECT_FALSE(run({"--any"}).code.has_value());
  const Outcome both = run({"--any", "--most", "1"});
  EXPECT_EQ(both.code, kExitBadUsage);
  EXPECT_THAT(both.err, AllOf(HasSubstr("--any"), HasSubstr("--most")));
}

TEST(Option, DelimiterSplitsAWordAndEachPartIsChecked) {
  std::vector<int64_t> ranks;
  const auto declare = [](Option option) { option.Delimiter(',').AtLeast(0); };
  EXPECT_FALSE(RunOption(ranks, {"-v", "0,1", "2"}, declare).code.has_value());
  EXPECT_THAT(ranks, ElementsAre(0, 1, 2));
  EXPECT_THAT(RunOption(ranks, {"-v", "0,x"}, declare).err, HasSubstr("'x' is not a whole number"));
}

TEST(Option, OneWordEachLeavesTheWordsAfterIt) {
  Program program("program", "What it does", "program");
  std::vector<std::string> values;
  std::string word;
  program.AddOption("--value", values).OneWordEach();
  program.AddOption("word", word);
  EXPECT_FALSE(Parse(program, {"--value", "a", "b", "--value", "c"}).code.has_value());
  EXPECT_THAT(values, ElementsAre("a", "c"));
  EXPECT_EQ(word, "b");
}

TEST(Option, HelpSaysTypeRangeAndDefault) {
  int64_t count = 7;
  uint64_t seed = 0;
  double share = 0.25;
  std::string mode, name = "x";
  std::vector<int64_t> ranks;
  const std::string help = HelpOf([&](Program& program) {
    program.AddOption("--count", count, "How many").InRange(1, 9).ShowDefault();
    program.AddOption("--seed", seed);
    program.AddOption("--share", share).InRange(0.0, 1.0).ShowDefault();
    program.AddOption("--mode", mode).OneOf({"a", "b"}).DefaultText("a");
    program.AddOption("--name", name).TypeName("NAME").ShowDefault().Required();
    program.AddOption("--ranks", ranks).AtLeast(0).TypeName("N,…");
  });
  EXPECT_THAT(help,
              AllOf(HasSubstr("--count INT:INT in [1 - 9]=7\n"), HasSubstr("How many"),
                    HasSubstr("--seed UINT "), HasSubstr("--share FLOAT:FLOAT in [0 - 1]=0.25"),
                    HasSubstr("--mode TEXT:{a,b}=a"), HasSubstr("--name NAME=x REQUIRED"),
                    HasSubstr("--ranks N,… ...")));
}

}  // namespace
}  // namespace mega
