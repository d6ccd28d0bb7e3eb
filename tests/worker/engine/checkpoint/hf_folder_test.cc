#include "worker/engine/checkpoint/hf_folder.h"

#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/checkpoint/saved.h"

namespace mega::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void WriteShard(const std::string& path, const std::string& tensor, float value) {
  const std::vector<TensorDeclaration> one = {{tensor, DType::kF32, Shape{1}}};
  auto writer = SafetensorsWriter::Create(path, one);
  MEGA_CHECK_OK(writer);
  MEGA_CHECK_OK(writer->Append(std::as_bytes(std::span(&value, 1))));
  MEGA_CHECK_OK(writer->Finish());
}

float ValueOf(const HfFolder& folder, const std::string& name) {
  const absl::StatusOr<TensorEntry> entry = folder.Get(name);
  MEGA_CHECK_OK(entry);
  float value;
  std::memcpy(&value, entry->data.data(), sizeof(value));
  return value;
}

TEST(HfFolder, ReadsOneFileOrShards) {
  TempDir single, sharded;
  WriteShard(single.path() + "/model.safetensors", "w", 3);
  const auto one = HfFolder::Open(single.path());
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(one->names(), ElementsAre("w"));
  EXPECT_EQ(ValueOf(*one, "w"), 3);

  WriteShard(sharded.path() + "/model-1.safetensors", "a", 1);
  WriteShard(sharded.path() + "/model-2.safetensors", "b", 2);
  std::ofstream(sharded.path() + "/model.safetensors.index.json")
      << R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})";
  const auto two = HfFolder::Open(sharded.path());
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(ValueOf(*two, "a"), 1);
  EXPECT_EQ(ValueOf(*two, "b"), 2);
  EXPECT_THAT(std::string(two->Get("c").status().message()), HasSubstr("c"));
}

TEST(HfFolder, RefusesAnIndexThatLiesOrLeadsOutOfTheFolder) {
  TempDir folder;
  WriteShard(folder.path() + "/model-1.safetensors", "a", 1);
  EXPECT_EQ(HfFolder::Open(folder.path()).status().code(), absl::StatusCode::kNotFound);
  for (const char* index :
       {R"({"weight_map": {"a": "../model-1.safetensors"}})", R"({"weight_map": {"a": ".."}})",
        R"({"weight_map": {"z": "model-1.safetensors"}})", R"({"weight_map": {"a": 3}})",
        R"({"weight_map": []})", R"([])", R"({"weight_)", R"({})", R"({"weight_map": 1})",
        R"({"weight_map": {"a": {"b": "model-1.safetensors"}}})", R"({"weight_map": {"a": ""}})",
        R"({"weight_map": {"a": "model-1.safetensors", "a": "model-1.safetensors"}})",
        R"({"weight_map": {}, "weight_map": {"a": "model-1.safetensors"}})"}) {
    std::ofstream(folder.path() + "/model.safetensors.index.json") << index;
    EXPECT_FALSE(HfFolder::Open(folder.path()).ok()) << index;
  }
}

TEST(HfFolder, WhatStandsBesideTheWeightMapOfAnIndexMayBeAnything) {
  TempDir folder;
  WriteShard(folder.path() + "/model-1.safetensors", "a", 1);
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  std::ofstream(folder.path() + "/model.safetensors.index.json")
      << R"({"metadata": {"total_size": 4, "weight_map": {"z": 1}}, "weight_map": )"
      << R"({"a": "model-1.safetensors"}, "more": )" << deep << "}";
  const auto opened = HfFolder::Open(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(opened->names(), ElementsAre("a"));
}

// Case: a named pipe in a file's place blocked the rank for ever.
TEST(HfFolder, APipeIsNoIndexAndNoManifest) {
  TempDir folder;
  ASSERT_EQ(mkfifo((folder.path() + "/model.safetensors.index.json").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((folder.path() + "/manifest.json").c_str(), 0600), 0);
  EXPECT_THAT(std::string(HfFolder::Open(folder.path()).status().message()),
              HasSubstr("is not a regular file"));
  EXPECT_THAT(std::string(ReadManifest(folder.path()).status().message()),
              HasSubstr("is not a regular file"));
}

// Case: a folder that the rank may not look into ended it with "terminate called".
TEST(HfFolder, OneThatCannotBeLookedIntoIsAnErrorThatNamesIt) {
  TempDir folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_THAT(std::string(HfFolder::Open(folder / "loop").status().message()),
              AllOf(HasSubstr(folder / "loop"), HasSubstr("symbolic links")));
}

}  // namespace
}  // namespace mega::checkpoint
