#include "manifest/slice_file.h"

#include "gtest/gtest.h"

namespace mega::manifest {
namespace {

TEST(SliceFile, ItsNameSaysWhoWroteIt) {
  EXPECT_EQ(SliceFileName({.attempt = 3, .rank = 1}), "a3-r00001.safetensors");
  for (const int64_t attempt : {int64_t{1}, int64_t{100}, INT64_MAX}) {
    for (const int64_t rank : {int64_t{0}, int64_t{99'999}, int64_t{1'000'000}}) {
      const std::string name = SliceFileName({.attempt = attempt, .rank = rank});
      for (const std::string& suffix : {"", ".tmp"}) {
        const auto file = ParseSliceFileName(name + suffix);
        ASSERT_TRUE(file.has_value()) << name << suffix;
        EXPECT_EQ(file->attempt, attempt);
        EXPECT_EQ(file->rank, rank);
      }
    }
  }
}

TEST(SliceFile, NothingElseIsOne) {
  for (const char* name :
       {"", "a", "manifest.json", "a1-r00000", "a1-r00000.safetensors.bak", "a-r00000.safetensors",
        "a1-rx.safetensors", "a1-r.safetensors", "a-1-r00000.safetensors", "a+1-r0.safetensors",
        "model-a1-r00000.safetensors", "a99999999999999999999-r00000.safetensors"}) {
    EXPECT_FALSE(ParseSliceFileName(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace mega::manifest
