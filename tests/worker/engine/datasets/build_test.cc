#include "worker/engine/datasets/build.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "worker/engine/datasets/indexed.h"
#include "worker/engine/datasets/text_cache.h"

namespace mega::datasets {
namespace {

using mega::testing::ReadFile;
using mega::testing::TempDir;
using mega::testing::WriteFile;
using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string TextOf(const std::string& prefix) {
  const auto dataset = *IndexedDataset::Open(prefix);
  std::vector<int32_t> ids(static_cast<size_t>(dataset.num_tokens()));
  MEGA_CHECK(dataset.Read(0, ids).ok());
  return (*tokenizers::MakeTokenizer("byte"))->Decode(ids);
}

class BuildTest : public ::testing::Test {
 protected:
  absl::Status Run(const std::vector<std::string>& paths) {
    return Build(paths, *tokenizer_, folder_ / "out",
                 [this](const BuildProgress& progress) { last_ = progress; });
  }
  TempDir folder_;
  std::unique_ptr<tokenizers::Tokenizer> tokenizer_ = *tokenizers::MakeTokenizer("byte");
  BuildProgress last_;
};

TEST_F(BuildTest, ATextFileIsOneDocument) {
  const std::string text(3'000'001, 'x');  // several blocks
  WriteFile(folder_ / "a.txt", text);
  WriteFile(folder_ / "b.txt", "second");
  ASSERT_TRUE(Run({folder_ / "a.txt", folder_ / "b.txt"}).ok());
  EXPECT_TRUE(TextOf(folder_ / "out") == text + "second");
  const auto dataset = *IndexedDataset::Open(folder_ / "out");
  EXPECT_EQ(dataset.num_documents(), 2);
  EXPECT_EQ(dataset.type(), TokenType::kU8);
  EXPECT_EQ(last_.documents, 2);
  EXPECT_EQ(last_.bytes_read, last_.bytes_total);
  EXPECT_EQ(last_.tokens, 3'000'007);
}

TEST_F(BuildTest, AJsonlFileIsOneDocumentALine) {
  WriteFile(folder_ / "a.jsonl",
            "{\"text\":\"one\\n\",\"id\":1}\r\n\n  \n{\"text\":\"\\u00fc\"}\n{\"text\":\"\"}\n"
            "{\"id\":2,\"text\":\"end\"}");
  ASSERT_TRUE(Run({folder_ / "a.jsonl"}).ok());
  EXPECT_EQ(TextOf(folder_ / "out"), "one\nüend");
  EXPECT_EQ((*IndexedDataset::Open(folder_ / "out")).num_documents(), 4);
}

TEST_F(BuildTest, JsonlLinesMayCrossBlocks) {
  std::string file, text;
  for (int i = 0; i < 300; ++i) {
    const std::string line(static_cast<size_t>(7919 * (i % 13) + 1),
                           static_cast<char>('a' + i % 26));
    file += "{\"text\":\"" + line + "\"}\n";
    text += line;
  }
  WriteFile(folder_ / "a.jsonl", file);
  ASSERT_TRUE(Run({folder_ / "a.jsonl"}).ok());
  EXPECT_TRUE(TextOf(folder_ / "out") == text);
}

TEST_F(BuildTest, ABadLineIsNamedAndNothingIsLeft) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\"text\":\"a\"}\n{\"text\":", "a.jsonl:2: "},
      {"{\"text\":\"a\"}\n\n[1]\n", "a.jsonl:3: this is no object"},
      {"{\"body\":\"a\"}", "a.jsonl:1: the object has no \"text\""},
      {"{\"text\":1}", "a.jsonl:1: \"text\" is not a string"},
      {"{\"text\":\"\xff\"}", "a.jsonl:1: "},
      {"plain text\n", "a.jsonl:1: "}};
  for (const auto& [file, message] : cases) {
    WriteFile(folder_ / "a.jsonl", file);
    EXPECT_THAT(std::string(Run({folder_ / "a.jsonl"}).message()), HasSubstr(message));
    std::filesystem::remove(folder_ / "a.jsonl");
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << file;
  }
}

TEST_F(BuildTest, MissingFilesAndFoldersAreNamed) {
  EXPECT_THAT(std::string(Run({folder_ / "none.txt"}).message()),
              HasSubstr("none.txt cannot be read"));
  EXPECT_THAT(std::string(Run({folder_.path()}).message()), HasSubstr("is not a file"));
  ASSERT_EQ(mkfifo((folder_ / "pipe.txt").c_str(), 0600), 0);
  EXPECT_THAT(std::string(Run({folder_ / "pipe.txt"}).message()), HasSubstr("is not a file"));
}

// Case: every build that was killed left a file as large as the dataset.
TEST_F(BuildTest, WhatADeadBuildLeftIsRemovedByTheNextOneOfTheSameText) {
  WriteFile(folder_ / "a.txt", "text");
  const std::string cache = folder_ / "cache";
  const std::string prefix = *BuildCached(folder_ / "a.txt", *tokenizer_, cache);
  std::filesystem::remove(prefix + ".from");  // never finished
  WriteFile(prefix + ".bin.4194305.0.tmp", "half");
  WriteFile(prefix + ".idx.4194305.1.tmp", "half");
  WriteFile(cache + "/other-0123.bin.4194305.0.tmp", "of another text");
  ASSERT_EQ(*BuildCached(folder_ / "a.txt", *tokenizer_, cache), prefix);
  EXPECT_FALSE(std::filesystem::exists(prefix + ".bin.4194305.0.tmp"));
  EXPECT_FALSE(std::filesystem::exists(prefix + ".idx.4194305.1.tmp"));
  EXPECT_TRUE(std::filesystem::exists(cache + "/other-0123.bin.4194305.0.tmp"));
  EXPECT_EQ(TextOf(prefix), "text");
}

TEST_F(BuildTest, ACachedDatasetIsReusedUntilTheTextChanges) {
  WriteFile(folder_ / "a.txt", "first");
  const std::string cache = folder_ / "cache";
  int builds = 0;
  const OnProgress count = [&builds](const BuildProgress&) { ++builds; };
  const std::string prefix = *BuildCached(folder_ / "a.txt", *tokenizer_, cache, count);
  EXPECT_EQ(*BuildCached(folder_ / "a.txt", *tokenizer_, cache, count), prefix);
  EXPECT_EQ(builds, 1);
  WriteFile(folder_ / "a.txt", "changed");
  const std::string changed = *BuildCached(folder_ / "a.txt", *tokenizer_, cache, count);
  EXPECT_NE(changed, prefix);
  EXPECT_EQ(TextOf(changed), "changed");
  EXPECT_EQ(TextOf(prefix), "first");
}

TEST_F(BuildTest, AnIncompleteCacheIsBuiltAgain) {
  WriteFile(folder_ / "a.txt", "first");
  const std::string prefix = *BuildCached(folder_ / "a.txt", *tokenizer_, folder_ / "cache");
  std::filesystem::remove(prefix + ".idx");
  EXPECT_EQ(*BuildCached(folder_ / "a.txt", *tokenizer_, folder_ / "cache"), prefix);
  EXPECT_EQ(TextOf(prefix), "first");
}

// Case: a cut file failed every job on its text, for good, and a flipped byte was trained on.
TEST_F(BuildTest, ADamagedCacheIsBuiltAgain) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "line " + std::to_string(i) + "\n";
  WriteFile(folder_ / "a.txt", text);
  const std::string prefix = *BuildCached(folder_ / "a.txt", *tokenizer_, folder_ / "cache");
  const std::string bin = ReadFile(prefix + ".bin");
  const std::string index = ReadFile(prefix + ".idx");
  std::string flipped = bin;
  flipped[bin.size() / 2 + 7] ^= 1;
  const std::pair<const char*, std::string> damages[] = {{".bin", bin.substr(0, 1000)},
                                                         {".bin", ""},
                                                         {".bin", flipped},
                                                         {".bin", bin + "x"},
                                                         {".idx", ""},
                                                         {".idx", index.substr(0, 20)},
                                                         {".from", ""},
                                                         {".from", "noise"}};
  for (const auto& [ending, content] : damages) {
    WriteFile(prefix + ending, content);
    ASSERT_EQ(*BuildCached(folder_ / "a.txt", *tokenizer_, folder_ / "cache"), prefix);
    EXPECT_TRUE(TextOf(prefix) == text) << ending << " of " << content.size() << " bytes";
  }
}

TEST_F(BuildTest, ManyProcessesAtOnceBuildOnce) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += "line " + std::to_string(i) + "\n";
  WriteFile(folder_ / "a.txt", text);
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      bool built = false;
      const auto prefix = BuildCached(folder_ / "a.txt", *tokenizer_, folder_ / "cache",
                                      [&built](const BuildProgress&) { built = true; });
      const bool right = prefix.ok() && TextOf(*prefix) == text;
      _exit(!right ? 2 : built ? 1 : 0);
    }
    children.push_back(pid);
  }
  int builders = 0;
  for (pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_NE(WEXITSTATUS(status), 2);
    builders += WEXITSTATUS(status);
  }
  EXPECT_EQ(builders, 1);
}

}  // namespace
}  // namespace mega::datasets
