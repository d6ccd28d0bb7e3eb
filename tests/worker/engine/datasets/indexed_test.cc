#include "worker/engine/datasets/indexed.h"

#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_dir.h"

namespace mega::datasets {
namespace {

using mega::testing::ReadFile;
using mega::testing::TempDir;
using mega::testing::WriteFile;
using ::testing::HasSubstr;

using Documents = std::vector<std::vector<std::vector<int32_t>>>;

const std::string kData = std::string(MEGA_TEST_DATA) + "/megatron_data/";

Documents ReferenceDocuments(const std::string& name) {
  static const auto* json =
      new nlohmann::json(nlohmann::json::parse(ReadFile(kData + "documents.json")));
  return (*json)["documents"][name].get<Documents>();
}

class ReferenceDataset : public ::testing::TestWithParam<const char*> {};

TEST_P(ReferenceDataset, ReadsAsItsDocuments) {
  const Documents documents = ReferenceDocuments(GetParam());
  const auto dataset = *IndexedDataset::Open(kData + GetParam());
  ASSERT_EQ(dataset.num_documents(), static_cast<int64_t>(documents.size()));
  int64_t sequence = 0, token = 0;
  for (size_t d = 0; d < documents.size(); ++d) {
    EXPECT_EQ(dataset.DocumentStart(static_cast<int64_t>(d)), sequence);
    for (const std::vector<int32_t>& expected : documents[d]) {
      ASSERT_EQ(dataset.SequenceLength(sequence), static_cast<int64_t>(expected.size()));
      EXPECT_EQ(dataset.SequenceStart(sequence), token);
      std::vector<int32_t> tokens(expected.size());
      ASSERT_TRUE(dataset.Read(token, tokens).ok());
      EXPECT_EQ(tokens, expected);
      ++sequence;
      token += static_cast<int64_t>(expected.size());
    }
  }
  EXPECT_EQ(dataset.num_sequences(), sequence);
  EXPECT_EQ(dataset.num_tokens(), token);
}

TEST_P(ReferenceDataset, IsWrittenByteForByte) {
  const TempDir folder;
  const TokenType type = (*IndexedDataset::Open(kData + GetParam())).type();
  auto writer = *IndexedWriter::Create(folder / "out", type);
  for (const auto& document : ReferenceDocuments(GetParam())) {
    for (const auto& sequence : document) {
      ASSERT_TRUE(writer->Append(sequence).ok());
      writer->EndSequence();
    }
    writer->EndDocument();
  }
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_TRUE(ReadFile(folder / "out.idx") == ReadFile(kData + GetParam() + ".idx"));
  EXPECT_TRUE(ReadFile(folder / "out.bin") == ReadFile(kData + GetParam() + ".bin"));
}

INSTANTIATE_TEST_SUITE_P(Megatron, ReferenceDataset,
                         ::testing::Values("docs_u16", "docs_i32", "blend_a", "blend_b",
                                           "blend_c"));

// A small good dataset whose bytes the tests below damage.
class DamagedIndex : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = *IndexedWriter::Create(folder_ / "d", TokenType::kU16);
    ASSERT_TRUE(writer->Append(std::vector<int32_t>{1, 2, 3}).ok());
    writer->EndDocument();
    ASSERT_TRUE(writer->Append(std::vector<int32_t>{4, 5}).ok());
    ASSERT_TRUE(writer->Finish().ok());
    index_ = ReadFile(folder_ / "d.idx");
    bin_ = ReadFile(folder_ / "d.bin");
    ASSERT_TRUE(IndexedDataset::Open(folder_ / "d").ok());
  }

  std::string ErrorOf(const std::string& index, const std::string& bin) {
    WriteFile(folder_ / "d.idx", index);
    if (bin != bin_) WriteFile(folder_ / "d.bin", bin);
    const auto dataset = IndexedDataset::Open(folder_ / "d");
    if (bin != bin_) WriteFile(folder_ / "d.bin", bin_);
    return dataset.ok() ? "" : std::string(dataset.status().message());
  }
  template <typename T>
  std::string ErrorWith(size_t at, T value) {
    std::string index = index_;
    std::memcpy(index.data() + at, &value, sizeof(T));
    return ErrorOf(index, bin_);
  }

  TempDir folder_;
  std::string index_, bin_;
};

TEST_F(DamagedIndex, IsRefusedWithWhatItSaysAndWhatIsThere) {
  EXPECT_THAT(ErrorWith<char>(0, 'X'), HasSubstr("d.idx: does not start with MMIDIDX"));
  EXPECT_THAT(ErrorWith<uint64_t>(9, 2), HasSubstr("version 2"));
  for (uint8_t code : {0, 6, 7, 9, 255})
    EXPECT_THAT(ErrorWith<uint8_t>(17, code), HasSubstr("dtype code " + std::to_string(code)));
  EXPECT_THAT(ErrorWith<uint64_t>(18, 3), HasSubstr("says 3 sequences"));
  EXPECT_THAT(ErrorWith<uint64_t>(18, ~uint64_t{0}), HasSubstr("cannot hold"));
  EXPECT_THAT(ErrorWith<uint64_t>(18, uint64_t{1} << 60), HasSubstr("cannot hold"));
  EXPECT_THAT(ErrorWith<uint64_t>(26, uint64_t{1} << 61), HasSubstr("cannot hold"));
  EXPECT_THAT(ErrorWith<uint64_t>(26, 0), HasSubstr("cannot hold"));
  EXPECT_THAT(ErrorWith<int32_t>(34, -1), HasSubstr("do not belong together"));
  EXPECT_THAT(ErrorWith<int32_t>(34, 2), HasSubstr("do not belong together"));
  EXPECT_THAT(ErrorWith<int32_t>(34, 0x7fffffff), HasSubstr("do not belong together"));
  EXPECT_THAT(ErrorWith<int64_t>(42, 2), HasSubstr("sequence 0 has 3 tokens at byte 2"));
  EXPECT_THAT(ErrorWith<int64_t>(50, -6), HasSubstr("do not belong together"));
  EXPECT_THAT(ErrorWith<int64_t>(58, 1), HasSubstr("starts must rise"));
  EXPECT_THAT(ErrorWith<int64_t>(66, 3), HasSubstr("starts must rise"));
  EXPECT_THAT(ErrorWith<int64_t>(74, 1), HasSubstr("starts must rise"));
  EXPECT_THAT(ErrorOf(index_, bin_ + "x"), HasSubstr("d.bin has 11 bytes"));
  EXPECT_THAT(ErrorOf(index_, bin_.substr(0, 9)), HasSubstr("d.bin has 9 bytes"));
  EXPECT_THAT(ErrorOf("", bin_), HasSubstr("has 0 bytes"));
}

TEST_F(DamagedIndex, NoTruncationAndNoFlippedByteCrashes) {
  for (size_t n = 0; n < index_.size(); ++n) EXPECT_NE(ErrorOf(index_.substr(0, n), bin_), "");
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    std::string index = index_;
    for (int k = 0; k < 3; ++k) index[random() % index.size()] = static_cast<char>(random());
    ErrorOf(index, bin_);
  }
}

TEST_F(DamagedIndex, AFileCutWhileOpenIsAnErrorNotASignal) {
  const auto dataset = *IndexedDataset::Open(folder_ / "d");
  std::filesystem::resize_file(folder_ / "d.bin", 4);
  std::vector<int32_t> tokens(5);
  EXPECT_EQ(dataset.Read(0, tokens).code(), absl::StatusCode::kDataLoss);
}

TEST(IndexedDataset, RefusesIdsThatAreNoTokens) {
  const TempDir folder;
  auto writer = *IndexedWriter::Create(folder / "d", TokenType::kI32);
  ASSERT_TRUE(writer->Append(std::vector<int32_t>{1, 2}).ok());
  ASSERT_TRUE(writer->Finish().ok());
  std::string bin = ReadFile(folder / "d.bin");
  bin[7] = '\xff';
  WriteFile(folder / "d.bin", bin);
  std::vector<int32_t> tokens(2);
  EXPECT_THAT(std::string((*IndexedDataset::Open(folder / "d")).Read(0, tokens).message()),
              HasSubstr("token 1 is negative"));
}

TEST(IndexedWriter, RefusesWhatItsTypeCannotHold) {
  const TempDir folder;
  auto writer = *IndexedWriter::Create(folder / "d", TokenType::kU8);
  EXPECT_FALSE(writer->Append(std::vector<int32_t>{256}).ok());
  EXPECT_FALSE(writer->Append(std::vector<int32_t>{-1}).ok());
}

TEST(IndexedWriter, LeavesNothingBehindUnlessFinished) {
  const TempDir folder;
  { auto writer = *IndexedWriter::Create(folder / "d", TokenType::kU8); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(TokenTypes, AreTheSmallestThatHoldTheVocabulary) {
  EXPECT_EQ(TypeFor(256), TokenType::kU8);
  EXPECT_EQ(TypeFor(257), TokenType::kU16);
  EXPECT_EQ(TypeFor(65536), TokenType::kU16);
  EXPECT_EQ(TypeFor(65537), TokenType::kI32);
}

// Offsets past 2^32 (Megatron-LM issue 1672): a sparse .bin of 2^30 + 10 four-byte tokens.
TEST(IndexedDataset, OffsetsPast32BitsRise) {
  const TempDir folder;
  constexpr int64_t kLengths[] = {(1 << 30) - 5, 10, 5};
  std::string index(std::string("MMIDIDX\0\0", 9));
  const auto put = [&index](auto value) {
    index.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  put(uint64_t{1});
  put(uint8_t{4});
  put(uint64_t{3});
  put(uint64_t{2});
  for (int64_t length : kLengths) put(static_cast<int32_t>(length));
  int64_t offset = 0;
  for (int64_t length : kLengths) put(std::exchange(offset, offset + 4 * length));
  put(int64_t{0});
  put(int64_t{3});
  WriteFile(folder / "d.idx", index);
  WriteFile(folder / "d.bin", "");
  std::filesystem::resize_file(folder / "d.bin", static_cast<uintmax_t>(offset));
  const auto dataset = *IndexedDataset::Open(folder / "d");
  EXPECT_EQ(dataset.num_tokens(), (int64_t{1} << 30) + 10);
  EXPECT_EQ(dataset.SequenceStart(2), (int64_t{1} << 30) + 5);
  std::vector<int32_t> tokens(5, 1);
  ASSERT_TRUE(dataset.Read(dataset.SequenceStart(2), tokens).ok());
  EXPECT_EQ(tokens, std::vector<int32_t>(5, 0));
}

// Index building must not keep an object a document (Megatron-LM issue 444).
TEST(IndexedWriter, TwoMillionDocumentsNeedLittleMemory) {
  const TempDir folder;
  auto writer = *IndexedWriter::Create(folder / "d", TokenType::kU16);
  const std::vector<int32_t> token = {7};
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < 2'000'000; ++i) {
    ASSERT_TRUE(writer->Append(token).ok());
    writer->EndDocument();
  }
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ((*IndexedDataset::Open(folder / "d")).num_documents(), 2'000'000);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 200 * 1024);  // KiB
}

}  // namespace
}  // namespace mega::datasets
