#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_dir.h"
#include "worker/engine/datasets/batch_rows.h"
#include "worker/engine/datasets/permutation.h"
#include "worker/engine/datasets/sample_source.h"

namespace mega::datasets {
namespace {

using mega::testing::ReadFile;
using mega::testing::TempDir;
using mega::testing::WriteFile;
using ::testing::HasSubstr;

TEST(Permutation, IsOneToOneForEverySize) {
  for (int64_t n = 1; n <= 1100; ++n) {
    const Permutation permutation(n, 17);
    std::vector<bool> seen(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = permutation.At(i);
      ASSERT_TRUE(at >= 0 && at < n);
      ASSERT_FALSE(seen[static_cast<size_t>(at)]) << n;
      seen[static_cast<size_t>(at)] = true;
    }
  }
}

TEST(Permutation, ReachesFarPast32Bits) {
  const int64_t n = (int64_t{1} << 61) + 12345;
  const Permutation permutation(n, 3);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) seen.insert(permutation.At(n - 1 - i));
  EXPECT_EQ(seen.size(), 1000u);
}

// Where 0 lands over many keys is uniform: chi-square over 50 places, 99.9 % quantile 85.
TEST(Permutation, PlacesAreUniformOverKeys) {
  constexpr int kPlaces = 50, kKeys = 20000;
  std::vector<int> count(kPlaces);
  for (uint64_t key = 0; key < kKeys; ++key)
    ++count[static_cast<size_t>(Permutation(kPlaces, key).At(0))];
  double chi_square = 0;
  const double expected = double{kKeys} / kPlaces;
  for (int c : count) chi_square += (c - expected) * (c - expected) / expected;
  EXPECT_LT(chi_square, 85);
}

// A changed value here reorders the data of every run that is resumed.
TEST(Permutation, IsFrozen) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < 8; ++i) places.push_back(Permutation(8, 1234).At(i));
  EXPECT_THAT(places, ::testing::ElementsAre(1, 0, 7, 5, 2, 3, 4, 6));
}

class SamplesTest : public ::testing::Test {
 protected:
  // Text whose byte i says where it stands, as far as 251 different bytes can.
  void WriteText(const std::string& name, int64_t size) {
    std::string text(static_cast<size_t>(size), '\0');
    for (int64_t i = 0; i < size; ++i) text[static_cast<size_t>(i)] = static_cast<char>(i % 251);
    WriteFile(folder_ / name, text);
  }
  v1::Data Data(const std::vector<std::string>& names, int64_t seq_length,
                const std::string& split) {
    v1::Data data;
    for (const std::string& name : names) data.add_paths(folder_ / name);
    data.set_seq_length(seq_length);
    data.set_split(split);
    data.set_order("shuffled");
    data.set_tokenizer("byte");
    return data;
  }
  absl::StatusOr<SampleSource> Open(const v1::Data& data, Split split = Split::kTrain,
                                    uint64_t seed = 1, int64_t vocab_size = 0) {
    return SampleSource::Open(data, folder_ / "run", split, seed, vocab_size);
  }
  std::vector<int32_t> Read(const SampleSource& source, int64_t sample) {
    std::vector<int32_t> tokens(static_cast<size_t>(source.seq_length()) + 1);
    EXPECT_TRUE(source.Read(sample, tokens).ok());
    return tokens;
  }
  TempDir folder_;
};

TEST_F(SamplesTest, NeighboursShareOneToken) {
  WriteText("a.txt", 101);
  v1::Data data = Data({"a.txt"}, 10, "1");
  data.set_order("sequential");
  const SampleSource source = *Open(data);
  EXPECT_EQ(source.samples_per_epoch(), 10);
  EXPECT_EQ(Read(source, 0).front(), 0);
  EXPECT_EQ(Read(source, 0).back(), 10);
  EXPECT_EQ(Read(source, 1).front(), 10);
  EXPECT_EQ(Read(source, 9).back(), 100);
  EXPECT_EQ(Read(source, 10), Read(source, 0));  // the next epoch
}

TEST_F(SamplesTest, EachEpochIsAnotherPermutationOfAllSamples) {
  WriteText("a.txt", 5000);
  const SampleSource source = *Open(Data({"a.txt"}, 16, "1"));
  const int64_t n = source.samples_per_epoch();
  std::vector<std::vector<int64_t>> epochs(3);
  for (int64_t i = 0; i < 3 * n; ++i)
    epochs[static_cast<size_t>(i / n)].push_back(source.TokenOf(i));
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  for (auto& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(epoch[static_cast<size_t>(i)], 16 * i);
  }
}

TEST_F(SamplesTest, AreAFunctionOfSeedAndPlaceAlone) {
  WriteText("a.txt", 5000);
  const v1::Data data = Data({"a.txt"}, 16, "1");
  const SampleSource one = *Open(data, Split::kTrain, 1), again = *Open(data, Split::kTrain, 1);
  const SampleSource other = *Open(data, Split::kTrain, 2);
  int different = 0;
  for (int64_t i : {700, 3, 1'000'000'007, 0}) {
    EXPECT_EQ(Read(one, i), Read(again, i));
    different += one.TokenOf(i) != other.TokenOf(i);
  }
  EXPECT_GE(different, 3);
}

TEST_F(SamplesTest, SplitsDoNotOverlapAndCoverTheText) {
  WriteText("a.txt", 4001);
  const v1::Data data = Data({"a.txt"}, 10, "80,15,5");
  std::vector<int> covered(4001);
  int64_t tokens = 0;
  for (Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    const SampleSource source = *Open(data, split);
    tokens += source.num_tokens();
    std::set<int64_t> own;
    for (int64_t i = 0; i < source.samples_per_epoch(); ++i)
      for (int64_t t = 0; t <= 10; ++t) own.insert(source.TokenOf(i) + t);
    for (int64_t t : own) ++covered[static_cast<size_t>(t)];
  }
  EXPECT_EQ(tokens, 4001);
  EXPECT_EQ(*std::max_element(covered.begin(), covered.end()), 1);
  EXPECT_GT(std::accumulate(covered.begin(), covered.end(), 0), 3950);
}

TEST_F(SamplesTest, ValidationFilesGiveTheirShareToTraining) {
  WriteText("a.txt", 1000);
  WriteText("v.txt", 300);
  v1::Data data = Data({"a.txt"}, 10, "80,15,5");
  data.mutable_validation()->add_paths(folder_ / "v.txt");
  EXPECT_EQ((*Open(data, Split::kTrain)).num_tokens(), 950);
  EXPECT_EQ((*Open(data, Split::kValidation)).num_tokens(), 300);
  EXPECT_EQ((*Open(data, Split::kTest)).num_tokens(), 50);
}

TEST_F(SamplesTest, RunOverTheBordersOfFiles) {
  WriteFile(folder_ / "a.txt", "abc");
  WriteFile(folder_ / "empty.txt", "");
  WriteFile(folder_ / "b.txt", "defghi");
  v1::Data data = Data({"a.txt", "empty.txt", "b.txt", "empty.txt"}, 4, "1");
  data.set_order("sequential");
  const SampleSource source = *Open(data);
  EXPECT_EQ(source.samples_per_epoch(), 2);
  EXPECT_THAT(Read(source, 0), ::testing::ElementsAre('a', 'b', 'c', 'd', 'e'));
  EXPECT_THAT(Read(source, 1), ::testing::ElementsAre('e', 'f', 'g', 'h', 'i'));
}

TEST_F(SamplesTest, ReadsBuiltDatasetsByAnySpelling) {
  const std::string data = std::string(MEGA_TEST_DATA) + "/megatron_data/docs_u16";
  v1::Data spec = Data({}, 16, "1");
  spec.add_paths("");
  for (const char* ending : {"", ".bin", ".idx"}) {
    spec.set_paths(0, data + ending);
    EXPECT_EQ((*Open(spec)).num_tokens(), 3167);
  }
}

TEST_F(SamplesTest, TextIsBuiltBesideItselfOrWhereDataCacheSays) {
  WriteText("a.txt", 100);
  v1::Data data = Data({"a.txt"}, 10, "1");
  ASSERT_TRUE(Open(data).ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ / ".mega-cache"));
  data.set_cache(folder_ / "elsewhere/deep");
  ASSERT_TRUE(Open(data).ok());
  EXPECT_FALSE(std::filesystem::is_empty(folder_ / "elsewhere/deep"));
}

// Case: each of these cost the job all of its attempts.
TEST_F(SamplesTest, WithoutAPlaceBesideItTextIsBuiltInTheRunsFolder) {
  WriteText("a.txt", 100);
  WriteFile(folder_ / ".mega-cache", "no folder");
  EXPECT_EQ((*Open(Data({"a.txt"}, 10, "1"))).num_tokens(), 100);
  std::filesystem::remove(folder_ / ".mega-cache");
  ASSERT_TRUE(Open(Data({"a.txt"}, 10, "1")).ok());
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / ".mega-cache"))
    if (entry.path().extension() == ".lock") {
      const std::filesystem::path prefix = entry.path().parent_path() / entry.path().stem();
      std::filesystem::remove(entry.path());
      std::filesystem::create_directory(entry.path());
      std::filesystem::remove(prefix.string() + ".from");
    }
  EXPECT_EQ((*Open(Data({"a.txt"}, 10, "1"))).num_tokens(), 100);
}

TEST_F(SamplesTest, ATooShortSplitNamesFileTokensNeedAndWayOut) {
  WriteText("a.txt", 100);
  const auto source = Open(Data({"a.txt"}, 10, "95,5"), Split::kValidation);
  EXPECT_THAT(std::string(source.status().message()),
              HasSubstr("a.txt: the validation split has 5 of 100 tokens, but one sample needs "
                        "data.seq_length + 1 = 11; give more text"));
  WriteText("empty.txt", 0);
  EXPECT_EQ(Open(Data({"empty.txt"}, 10, "1")).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(Open(Data({"none.txt"}, 10, "1")).status().message()),
              HasSubstr("data.paths: "));
}

TEST_F(SamplesTest, IdsAboveTheVocabularyAreRefusedByName) {
  WriteText("a.txt", 1000);
  const SampleSource source = *Open(Data({"a.txt"}, 500, "1"), Split::kTrain, 1, 200);
  std::vector<int32_t> tokens(501);
  EXPECT_THAT(std::string(source.Read(0, tokens).message()),
              HasSubstr("but model.vocab_size is 200"));
}

TEST(BatchRows, EveryLayoutHoldsTheSameSamples) {
  for (int64_t gbs : {1, 5, 12, 16}) {
    for (int64_t dp = 1; dp <= 6; ++dp) {
      for (int64_t mbs = 1; mbs <= gbs; ++mbs) {
        std::vector<int64_t> samples;
        int64_t rows = 0;
        for (int64_t j = 0; j < MicroBatchesPerStep(gbs, mbs, dp); ++j)
          for (int64_t r = 0; r < dp; ++r)
            for (int64_t b = 0; b < mbs; ++b, ++rows)
              if (const int64_t row = GlobalRow(j, r, b, dp, mbs); row < gbs)
                samples.push_back(row);
        std::vector<int64_t> expected(static_cast<size_t>(gbs));
        std::iota(expected.begin(), expected.end(), 0);
        ASSERT_EQ(samples, expected) << gbs << " " << dp << " " << mbs;
        ASSERT_LT(rows - gbs, mbs * dp);  // no micro-batch of absent rows only on every replica
      }
    }
  }
}

TEST(BatchRows, CountMicroBatchesAsMegatronDoes) {
  const auto json =
      nlohmann::json::parse(ReadFile(std::string(MEGA_TEST_DATA) + "/parallel/microbatches.json"));
  int compared = 0;
  for (const auto& config : json["configs"]) {
    for (const auto& row : config["rows_consumed_batch_microbatches"]) {
      EXPECT_EQ(MicroBatchesPerStep(row[1], config["micro_batch"], config["dp"]),
                row[2].get<int64_t>());
      ++compared;
    }
  }
  EXPECT_GT(compared, 50);
}

// Case: text behind a mount that gave an error ended the rank with "terminate called".
TEST_F(SamplesTest, TextThatCannotBeLookedAtIsAnErrorThatNamesIt) {
  std::filesystem::create_symlink("loop", folder_ / "loop");
  EXPECT_THAT(std::string(Open(Data({"loop/a"}, 10, "1")).status().message()),
              ::testing::HasSubstr(folder_ / "loop/a"));
}

}  // namespace
}  // namespace mega::datasets
