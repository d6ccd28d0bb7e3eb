// The guide's page of what this release does not do yet: each refusal is given as it is quoted, and
// nothing that the job file refuses as not implemented is missing.
#include <regex>
#include <sstream>

#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"

namespace mega::docs {
namespace {

const std::string kPage = e2e::ReadFile(MEGA_SOURCE_DIR "/docs/guide/release.md");

std::vector<std::smatch> Matches(const std::string& text, const std::regex& regex) {
  return {std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()};
}

TEST(Release, EveryRefusalIsGivenAsQuoted) {
  const std::regex row(R"(\| `([a-z_.]+=[^`]+)` \| `([^`]+)` \|)");
  const std::vector<std::smatch> rows = Matches(kPage, row);
  EXPECT_GE(rows.size(), 30U);
  for (const std::smatch& quoted : rows) {
    const e2e::Result plan = e2e::RunProgram(
        {MEGA_BIN_DIR "/megactl", "plan", MEGA_SOURCE_DIR "/deploy/examples/tiny.yaml", "--nodes",
         "1", "--devices", "2", "--set", quoted[1].str()});
    EXPECT_EQ(plan.code, 8) << quoted[1];
    EXPECT_NE(plan.out.find(": " + quoted[2].str() + "\n"), std::string::npos)
        << quoted[2] << "\nbut megactl says\n"
        << plan.out;
  }
}

TEST(Release, NothingThatIsRefusedIsMissing) {
  const std::string proto = e2e::ReadFile(MEGA_SOURCE_DIR "/proto/mega/v1/job.proto");
  const auto reasons = Matches(proto, std::regex(R"rx(unavailable: "([^"]+)")rx"));
  EXPECT_FALSE(reasons.empty());
  for (const std::smatch& reason : reasons)
    EXPECT_NE(kPage.find(reason[1].str()), std::string::npos) << reason[1];
  const auto choices =
      Matches(proto, std::regex(R"rx(([a-z0-9_]+) = [0-9]+ \[.*unavailable_words: "([^"]+)")rx"));
  EXPECT_FALSE(choices.empty());
  for (const std::smatch& choice : choices) {
    std::istringstream words(choice[2].str());
    for (std::string word; std::getline(words, word, ',');) {
      // In the row of its key, whose refusal names that.
      const std::regex row("\\| [^|\n]*\\b" + word + "\\b[^|\n]* \\| `[a-z_.]*\\." +
                           choice[1].str() + "=");
      EXPECT_TRUE(std::regex_search(kPage, row)) << choice[1] << ": " << word;
    }
  }
}

}  // namespace
}  // namespace mega::docs
