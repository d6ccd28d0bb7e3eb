// The tasks that people type: what they refuse, and what is on standard output by then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "tests/worker/engine/main/scripted_worker.h"
#include "worker/engine/main/data_task.h"
#include "worker/engine/main/generate_task.h"

namespace mega::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome OutcomeOf(const std::function<int()>& task) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = task();
  std::fflush(stdout);
  Outcome outcome{.code = code};
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(DataBuild, AnOutThatNamesNoFileIsRefused) {
  testing::TempDir dir;
  testing::WriteFile(dir / "a.txt", "text");
  for (const std::string& out : {std::string(), dir / ""}) {
    const Outcome outcome =
        OutcomeOf([&] { return BuildData({.files = {dir / "a.txt"}, .out = out}); });
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("--out '" + out + "' names no file"));
  }
  EXPECT_FALSE(std::filesystem::exists(dir / ".bin"));
}

TEST(DataBuild, ADatasetWithoutATokenIsSaid) {
  testing::TempDir dir;
  testing::WriteFile(dir / "empty.txt", "");
  const Outcome outcome =
      OutcomeOf([&] { return BuildData({.files = {dir / "empty.txt"}, .out = dir / "out"}); });
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("no file holds a token"));
}

// Case: the prompt stood on standard output before the error, as if it were an answer.
TEST(Generate, SaysNothingOfAPromptThatItRefuses) {
  testing::TempDir dir;
  const v1::StartTraining start = StartOf(TinyJob(dir), dir);
  ScriptedWorker worker(dir, start);
  MEGA_CHECK_OK(RunRank(start, worker));
  GenerateOptions options{.model = worker.committed().at(0).directory(),
                          .prompts = {"To be"},
                          .max_new_tokens = 3,
                          .threads = 1};
  EXPECT_THAT(OutcomeOf([&] { return Generate(options); }).out, StartsWith("To be"));
  options.prompts = {std::string(100'000, 'a')};  // longer than any position of the model
  const Outcome refused = OutcomeOf([&] { return Generate(options); });
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.out, IsEmpty());
}

}  // namespace
}  // namespace mega::engine
