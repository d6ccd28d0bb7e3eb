#include "worker/engine/checkpoint/manifest.h"

#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/manifest/good.h"
#include "tests/support/failing_readdir.h"
#include "tests/worker/engine/checkpoint/saved.h"

namespace mega::checkpoint {
namespace {

namespace fs = std::filesystem;
using google::protobuf::util::MessageDifferencer;

TEST(Manifest, RoundTripsThroughJson) {
  const absl::StatusOr<v1::Manifest> read = ParseManifest(PrintManifest(GoodManifest()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*read, GoodManifest()));
}

TEST(Manifest, NoCutOrSpoiltTextParses) {
  const std::string json = PrintManifest(GoodManifest());
  for (size_t length = 0; length + 2 < json.size(); ++length)
    EXPECT_FALSE(ParseManifest(json.substr(0, length)).ok()) << length;
  EXPECT_FALSE(ParseManifest(std::string(100000, '[')).ok());
}

TEST(Manifest, ATornCheckpointIsNotFound) {
  TempDir folder;
  EXPECT_EQ(FindCheckpoint(folder.path()).status().code(), absl::StatusCode::kNotFound);
  for (const int64_t step : {3, 12, 200}) {
    fs::create_directories(StepFolder(folder.path(), step));
    v1::Manifest manifest = GoodManifest();
    manifest.set_step(step);
    manifest.mutable_state()->set_step(step);
    if (step != 200) {
      ASSERT_EQ(WriteManifest(manifest, StepFolder(folder.path(), step)), absl::OkStatus());
    }
  }
  EXPECT_EQ(*FindCheckpoint(folder.path()), StepFolder(folder.path(), 12));
  EXPECT_EQ(*FindCheckpoint(StepFolder(folder.path(), 3)), StepFolder(folder.path(), 3));

  // The newest is the one committed last, whatever job it is of and how far that one had come.
  v1::Manifest later = *ReadManifest(StepFolder(folder.path(), 3));
  later.mutable_create_time()->set_seconds(1'700'000'000);
  ASSERT_EQ(WriteManifest(later, StepFolder(folder.path(), 3)), absl::OkStatus());
  EXPECT_EQ(*FindCheckpoint(folder.path()), StepFolder(folder.path(), 3));
  const auto read = ReadManifest(StepFolder(folder.path(), 12));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->step(), 12);
  EXPECT_EQ(read->directory(), StepFolder(folder.path(), 12));
}

// Case: the search ended where the disk failed, and an older checkpoint was taken for the newest.
TEST(Manifest, ASearchThatCannotSeeAllFindsNothing) {
  TempDir folder;
  for (const int64_t step : {3, 4, 5, 12}) {
    fs::create_directories(StepFolder(folder.path(), step));
    v1::Manifest manifest = GoodManifest();
    manifest.set_step(step);
    manifest.mutable_state()->set_step(step);
    ASSERT_EQ(WriteManifest(manifest, StepFolder(folder.path(), step)), absl::OkStatus());
  }
  for (int entries = 0; entries < 10; ++entries) {
    const mega::testing::FailingReaddir failing(entries);
    const absl::Status found = FindCheckpoint(folder.path()).status();
    EXPECT_FALSE(found.ok() || absl::IsNotFound(found)) << entries << " " << found;
  }
  EXPECT_EQ(*FindCheckpoint(folder.path()), StepFolder(folder.path(), 12));
}

}  // namespace
}  // namespace mega::checkpoint
