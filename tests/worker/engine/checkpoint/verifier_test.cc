// A checkpoint on a disk against its manifest: every kind of damage, all of it at once.
#include "worker/engine/checkpoint/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/worker/engine/checkpoint/saved.h"

namespace mega::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kStep = 7;

// Two ranks' files of three tensors.
class VerifierTest : public ::testing::Test {
 protected:
  VerifierTest() {
    const State state(pool_, {{6, 5}, {4}, {2, 3, 3}}, 0.5f);
    absl::StatusOr<v1::Manifest> saved = SaveAs(2, state, kStep, dir_.path(), pool_);
    MEGA_CHECK_OK(saved);
    manifest_ = *std::move(saved);
    Commit();
  }
  void Commit() { MEGA_CHECK_OK(WriteManifest(manifest_, folder_)); }

  std::string File(int rank) const { return folder_ + "/" + manifest_.files(rank).name(); }
  void Spoil(const std::string& path, int64_t byte) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(byte);
    const char old = static_cast<char>(file.get());
    file.seekp(byte);
    file.put(static_cast<char>(old ^ 1));
    ASSERT_TRUE(file.good());
  }
  std::vector<std::string> Damage() {
    const absl::StatusOr<Verdict> verdict = Verify(folder_);
    EXPECT_TRUE(verdict.ok()) << verdict.status();
    return verdict.ok() ? verdict->damage : std::vector<std::string>{};
  }

  Pool pool_{Device{}};
  testing::TempDir dir_;
  const std::string folder_ = StepFolder(dir_.path(), kStep);
  v1::Manifest manifest_;
};

TEST_F(VerifierTest, AWholeOneIsReadToTheLastByte) {
  VerifyProgress last;
  const absl::StatusOr<Verdict> verdict =
      Verify(folder_, [&](const VerifyProgress& progress) { last = progress; });
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_THAT(verdict->damage, IsEmpty());
  EXPECT_THAT(verdict->others, IsEmpty());
  EXPECT_EQ(verdict->manifest.step(), kStep);
  EXPECT_EQ(verdict->files, 2);
  EXPECT_EQ(verdict->bytes, manifest_.files(0).bytes() + manifest_.files(1).bytes());
  EXPECT_EQ(last.bytes_read, verdict->bytes);
  EXPECT_EQ(last.bytes_total, verdict->bytes);
}

TEST_F(VerifierTest, NoByteOfAFileCanChangeUnseen) {
  const auto bytes = static_cast<int64_t>(fs::file_size(File(1)));
  for (int64_t byte = 0; byte < bytes; ++byte) {
    Spoil(File(1), byte);
    EXPECT_FALSE(Damage().empty()) << byte;
    Spoil(File(1), byte);
  }
  EXPECT_THAT(Damage(), IsEmpty());
}

TEST_F(VerifierTest, ADamagedSliceIsNamed) {
  Spoil(File(0), manifest_.files(0).bytes() - 1);
  EXPECT_THAT(Damage(), ElementsAre(AllOf(HasSubstr(manifest_.files(0).name()),
                                          HasSubstr("the checksum of t"))));
}

TEST_F(VerifierTest, AllOfItIsToldAtOnce) {
  fs::resize_file(File(0), manifest_.files(0).bytes() - 1);
  fs::remove(File(1));
  EXPECT_THAT(Damage(), ElementsAre(HasSubstr("it was cut or replaced"), HasSubstr("is missing")));
}

TEST_F(VerifierTest, WhatTheManifestSaysOfASliceMustBeInItsFile) {
  manifest_.mutable_slices(0)->set_name_in_file("elsewhere");
  manifest_.mutable_tensors(1)->set_dtype("I32");
  Commit();
  EXPECT_THAT(Damage(), ::testing::IsSupersetOf({HasSubstr("has no tensor elsewhere"),
                                                 HasSubstr("is F32 but the manifest says I32")}));
}

TEST_F(VerifierTest, AFileThatIsRightInAllItsSlicesMustBeTheOneThatWasWritten) {
  manifest_.mutable_files(0)->set_xxh64(manifest_.files(0).xxh64() + 1);
  Commit();
  EXPECT_THAT(Damage(), ElementsAre(HasSubstr("though those of its slices are right")));
}

TEST_F(VerifierTest, ATornOneHasNoManifest) {
  fs::remove(folder_ + "/" + kManifestName);
  const absl::StatusOr<Verdict> verdict = Verify(folder_);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_FALSE(verdict->has_manifest_file);
  EXPECT_THAT(verdict->damage, ElementsAre(HasSubstr("a save that was never completed")));
  EXPECT_EQ(verdict->others.size(), 2u);
  EXPECT_EQ(Verify(dir_ / "nowhere").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(VerifierTest, AManifestThatIsNoneIsDamage) {
  std::ofstream(folder_ + "/" + kManifestName) << "{\"version\": 1, ";
  const absl::StatusOr<Verdict> verdict = Verify(folder_);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_TRUE(verdict->has_manifest_file);
  EXPECT_THAT(verdict->damage, ElementsAre(HasSubstr("not a manifest")));
}

TEST_F(VerifierTest, StrangersAreNoDamage) {
  std::ofstream(folder_ + "/a0-r00000.safetensors") << "of an attempt before";
  const absl::StatusOr<Verdict> verdict = Verify(folder_);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_THAT(verdict->damage, IsEmpty());
  EXPECT_THAT(verdict->others, ElementsAre("a0-r00000.safetensors"));
}

// A pipe would be waited for, a link may lead anywhere, and a header can claim anything.
TEST_F(VerifierTest, HostileFilesAreDamageAndNothingElse) {
  fs::remove(File(0));
  fs::create_directory(File(0));
  for (const std::string& bytes :
       {std::string(), std::string("short"), std::string(8, '\xff'), std::string(8, '\0') + "{}"}) {
    std::ofstream(File(1), std::ios::trunc | std::ios::binary) << bytes;
    manifest_.mutable_files(1)->set_bytes(static_cast<int64_t>(bytes.size()));
    Commit();
    EXPECT_EQ(Damage().size(), 2u) << bytes.size();
  }
}

}  // namespace
}  // namespace mega::checkpoint
