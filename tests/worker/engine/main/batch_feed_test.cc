#include "worker/engine/main/batch_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cross_entropy.h"
#include "tests/support/temp_dir.h"

namespace mega::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSeq = 4;

// Bytes 0, 1, 2 … in order: sample i begins with token 4 · i.
datasets::SampleSource Counting(const testing::TempDir& dir) {
  std::string text;
  for (int i = 0; i < 200; ++i) text.push_back(static_cast<char>(i));
  testing::WriteFile(dir / "count.txt", text);
  v1::Data data;
  data.add_paths(dir / "count.txt");
  data.set_seq_length(kSeq);
  data.set_order("sequential");
  data.set_split("1");
  data.set_tokenizer("byte");
  auto source = datasets::SampleSource::Open(data, dir / "cache", datasets::Split::kTrain, 1);
  MEGA_CHECK_OK(source);
  return *std::move(source);
}

std::vector<int32_t> Row(const TensorView& view, int64_t row) {
  const auto values = view.Rows(row, 1).flat<const int32_t>();
  return {values.begin(), values.end()};
}

class BatchFeedTest : public ::testing::Test {
 protected:
  testing::TempDir dir_;
  Pool pool_{Device{}};
  Stream stream_{Device{}, 1};
};

TEST_F(BatchFeedTest, LabelsAreTheTokensThatFollowAndAbsentRowsAreMasked) {
  const datasets::SampleSource source = Counting(dir_);
  // 5 samples for 2 replicas of micro-batches of 2: rows 4, 5 of the batch are replica 0's second.
  auto feed = BatchFeed::Make({.global_batch_size = 5,
                               .micro_batch_size = 2,
                               .seq_length = kSeq,
                               .dp_rank = 0,
                               .dp_size = 2},
                              pool_, stream_);
  ASSERT_TRUE(feed.ok());
  const auto batch = feed->Read(source, 10);
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_EQ(batch->size(), 2);
  EXPECT_THAT(Row((*batch)[0].tokens_BS, 0), ElementsAre(40, 41, 42, 43));
  EXPECT_THAT(Row((*batch)[0].labels_BS, 0), ElementsAre(41, 42, 43, 44));
  EXPECT_THAT(Row((*batch)[0].tokens_BS, 1), ElementsAre(44, 45, 46, 47));
  EXPECT_THAT(Row((*batch)[1].tokens_BS, 0), ElementsAre(56, 57, 58, 59));
  EXPECT_THAT(Row((*batch)[1].tokens_BS, 1), Each(0));
  EXPECT_THAT(Row((*batch)[1].labels_BS, 1), Each(kernels::kIgnoredLabel));
}

TEST_F(BatchFeedTest, ReadsAnySourceIntoTheSameBuffers) {
  const datasets::SampleSource source = Counting(dir_), other = Counting(dir_);
  auto feed = BatchFeed::Make({.global_batch_size = 2, .micro_batch_size = 2, .seq_length = kSeq},
                              pool_, stream_);
  ASSERT_TRUE(feed.ok());
  const int64_t bytes = pool_.UsageOf(Purpose::kWorkspace).bytes;
  EXPECT_EQ(bytes, 2 * 2 * kSeq * 4);
  ASSERT_TRUE(feed->Read(source, 0).ok());
  const auto batch = feed->Read(other, 1);
  EXPECT_THAT(Row((*batch)[0].tokens_BS, 0), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(pool_.UsageOf(Purpose::kWorkspace).bytes, bytes);
}

// Case: buffers of a batch that did not fit ended the rank without a word for the user.
TEST_F(BatchFeedTest, ABatchThatDoesNotFitIsAnError) {
  const auto feed = BatchFeed::Make({.global_batch_size = int64_t{1} << 40,
                                     .micro_batch_size = int64_t{1} << 40,
                                     .seq_length = 1 << 12},
                                    pool_, stream_);
  EXPECT_EQ(feed.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(feed.status().message()), HasSubstr("micro_batch_size"));
}

}  // namespace
}  // namespace mega::engine
