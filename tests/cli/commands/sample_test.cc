// The prompt that `run` takes from the job's own data.
#include "cli/commands/sample.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace mega::cli {
namespace {

std::string Prompt(const std::string& path) {
  v1::Data data;
  data.add_paths(path);
  return PromptFromData(data);
}

TEST(Sample, ThePromptIsTheStartOfTheFirstLineCutBetweenWords) {
  const mega::testing::TempDir folder;
  const std::string path = folder / "text.txt";
  for (const auto& [text, prompt] : std::vector<std::pair<std::string, std::string>>{
           {"", ""},
           {"\n\nTo be\nor not", "To be"},
           {"To be", "To be"},
           {"To be, or not to be, that is the question:\n", "To be, or not to be, that is"},
           {"Tobeornottobethatisthequestionwhether\n", "Tobeornottobethatisthequestionwh"},
           {std::string("\0\1", 2), ""}}) {
    mega::testing::WriteFile(path, text);
    EXPECT_EQ(Prompt(path), prompt);
  }
}

// Read whole, this line would end the process.
TEST(Sample, ALineOfAnyLengthIsNotReadWhole) {
  const mega::testing::TempDir folder;
  const std::string path = folder / "text.txt";
  mega::testing::WriteFile(path, "To be, or not to be, that is the question: ");
  std::filesystem::resize_file(path, uintmax_t{1} << 40);
  EXPECT_EQ(Prompt(path), "To be, or not to be, that is");
}

TEST(Sample, LinesOfJsonAreNoPrompt) {
  const mega::testing::TempDir folder;
  for (const char* name : {"more.jsonl", "more.ndjson"}) {
    mega::testing::WriteFile(folder / name, "{\"text\": \"To be\"}\n");
    EXPECT_EQ(Prompt(folder / name), "");
  }
}

}  // namespace
}  // namespace mega::cli
