// get, describe, nodes and queue with --watch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/cli/commands/commands_fixture.h"

namespace mega::cli {
namespace {

using ::testing::HasSubstr;

TEST_F(CommandsTest, AWatchedJobIsALineForEachChangeUntilItHasEnded) {
  std::atomic<int> looks = 0;
  coordinator_.get = [&](const v1::GetJobRequest&, v1::Job* job) {
    const int look = looks++;
    Fill(job, look < 2 ? v1::JOB_PHASE_RUNNING : v1::JOB_PHASE_SUCCEEDED);
    return grpc::Status::OK;
  };
  const Result json = Run({"get", "tiny", "--watch", "-o", "json"});
  ASSERT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(looks, 3);
  const std::vector<std::string> lines = absl::StrSplit(json.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u) << json.out;  // what has not changed is not said again
  EXPECT_EQ(nlohmann::json::parse(lines[0])["phase"], "JOB_PHASE_RUNNING");
  EXPECT_EQ(nlohmann::json::parse(lines[1])["phase"], "JOB_PHASE_SUCCEEDED");

  looks = 0;
  const Result yaml = Run({"get", "tiny", "--watch", "-o", "yaml"});
  const std::vector<std::string> documents = absl::StrSplit(yaml.out, "---\n", absl::SkipEmpty());
  ASSERT_EQ(documents.size(), 2u) << yaml.out;
  EXPECT_THAT(documents[1], HasSubstr("phase: JOB_PHASE_SUCCEEDED\n"));
}

TEST_F(CommandsTest, AWatchedDescriptionEndsWithTheJob) {
  JobIs(v1::JOB_PHASE_FAILED);
  const Result text = Run({"describe", "tiny", "-w"});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("Failed"));
}

TEST_F(CommandsTest, WatchingWhatIsNotThereFailsAtOnce) {
  GetFails(grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Run({"get", "tiny", "--watch"}).code, 3);
}

}  // namespace
}  // namespace mega::cli
