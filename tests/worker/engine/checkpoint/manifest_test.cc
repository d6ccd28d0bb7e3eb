#include "worker/engine/checkpoint/manifest.h"

#include <functional>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/checkpoint/saved.h"

namespace mega::checkpoint {
namespace {

namespace fs = std::filesystem;
using google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

// Two files; w [4, 6] in four quarters, b [3] whole.
v1::Manifest Good() {
  v1::Manifest manifest;
  manifest.set_version(1);
  manifest.set_step(12);
  manifest.mutable_state()->set_step(12);
  manifest.mutable_state()->set_consumed_samples(int64_t{1} << 60);
  for (const char* name : {"a.safetensors", "b.safetensors"}) {
    v1::CheckpointFile& file = *manifest.add_files();
    file.set_name(name);
    file.set_bytes(1000);
    file.set_xxh64(~uint64_t{0});
  }
  const auto tensor = [&](const char* name, std::vector<int64_t> shape) {
    v1::TensorInfo& info = *manifest.add_tensors();
    info.set_name(name);
    info.set_dtype("F32");
    info.mutable_global_shape()->Add(shape.begin(), shape.end());
  };
  const auto slice = [&](const char* name, std::vector<int64_t> offset, std::vector<int64_t> shape,
                         const char* file) {
    v1::TensorSlice& entry = *manifest.add_slices();
    entry.set_tensor(name);
    entry.mutable_offset()->Add(offset.begin(), offset.end());
    entry.mutable_shape()->Add(shape.begin(), shape.end());
    entry.set_file(file);
    entry.set_name_in_file(name);
  };
  tensor("w", {4, 6});
  tensor("b", {3});
  slice("w", {0, 0}, {2, 3}, "a.safetensors");
  slice("w", {0, 3}, {2, 3}, "b.safetensors");
  slice("w", {2, 0}, {2, 3}, "a.safetensors");
  slice("w", {2, 3}, {2, 3}, "b.safetensors");
  slice("b", {0}, {3}, "b.safetensors");
  return manifest;
}

TEST(Manifest, RoundTripsThroughJson) {
  const absl::StatusOr<v1::Manifest> read = ParseManifest(PrintManifest(Good()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*read, Good()));
}

TEST(Manifest, RefusesWhatCouldNotBeLoadedAndSaysWhy) {
  struct Case {
    const char* message;
    std::function<void(v1::Manifest&)> spoil;
  };
  const Case cases[] = {
      {"version is 2", [](auto& m) { m.set_version(2); }},
      {"step 12", [](auto& m) { m.mutable_state()->set_step(11); }},
      {"not a plain name", [](auto& m) { m.mutable_files(0)->set_name("../a"); }},
      {"not a plain name", [](auto& m) { m.mutable_files(0)->set_name(".."); }},
      {"not a plain name", [](auto& m) { m.mutable_files(0)->set_name(""); }},
      {"listed twice", [](auto& m) { m.mutable_files(0)->set_name("b.safetensors"); }},
      {"listed twice", [](auto& m) { m.mutable_tensors(1)->set_name("w"); }},
      {"does not list", [](auto& m) { m.mutable_slices(0)->set_tensor("v"); }},
      {"does not list", [](auto& m) { m.mutable_slices(0)->set_file("c"); }},
      {"dimensions", [](auto& m) { m.mutable_slices(0)->add_shape(1); }},
      {"covers [", [](auto& m) { m.mutable_slices(3)->set_offset(1, 4); }},
      {"covers [", [](auto& m) { m.mutable_slices(0)->set_offset(0, -1); }},
      {"covers [", [](auto& m) { m.mutable_slices(0)->set_offset(0, INT64_MAX); }},
      {"covers [", [](auto& m) { m.mutable_slices(0)->set_shape(0, INT64_MAX); }},
      {"cover 18 of its 24", [](auto& m) { m.mutable_slices()->DeleteSubrange(1, 1); }},
      {"more elements", [](auto& m) { *m.add_slices() = m.slices(0); }},
      {"overlap", [](auto& m) { m.mutable_slices(3)->set_offset(0, 1); }},
      {"too large", [](auto& m) { m.mutable_tensors(0)->set_global_shape(0, INT64_MAX / 2); }},
      {"consumed_samples", [](auto& m) { m.mutable_state()->set_consumed_samples(-1); }},
      {"consumed_tokens", [](auto& m) { m.mutable_state()->set_consumed_tokens(INT64_MAX); }},
      {"negative", [](auto& m) { m.mutable_tensors(0)->set_global_shape(0, -4); }},
  };
  ASSERT_EQ(ValidateManifest(Good()), absl::OkStatus());
  for (const Case& c : cases) {
    v1::Manifest manifest = Good();
    c.spoil(manifest);
    const absl::Status status = ValidateManifest(manifest);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(Manifest, NoCutOrSpoiltTextParses) {
  const std::string json = PrintManifest(Good());
  for (size_t length = 0; length + 2 < json.size(); ++length)
    EXPECT_FALSE(ParseManifest(json.substr(0, length)).ok()) << length;
  EXPECT_FALSE(ParseManifest(std::string(100000, '[')).ok());
}

TEST(Manifest, ATornCheckpointIsNotFound) {
  TempDir folder;
  EXPECT_EQ(FindCheckpoint(folder.path()).status().code(), absl::StatusCode::kNotFound);
  for (const int64_t step : {3, 12, 200}) {
    fs::create_directories(StepFolder(folder.path(), step));
    v1::Manifest manifest = Good();
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

}  // namespace
}  // namespace mega::checkpoint
