#include "worker/daemon/progress_table.h"

#include "gtest/gtest.h"

namespace mega::daemon {
namespace {

v1::Progress At(int64_t step) {
  v1::Progress progress;
  progress.set_phase("step");
  progress.set_step(step);
  return progress;
}

struct Table {
  std::vector<int64_t> steps;  // as they were sent
  ProgressTable table{absl::Seconds(1), [this](const v1::WorkerMessage& message) {
                        steps.push_back(message.rank_progress().step());
                      }};
  RankKey key{"job", 1, 7, 0};
};

TEST(ProgressTable, SendsWhatChangedAtMostOnceAHeartbeat) {
  Table t;
  t.table.Told(t.key, At(1), absl::Seconds(10));
  t.table.Told(t.key, At(1), absl::Seconds(12));  // the same
  t.table.Told(t.key, At(2), absl::Seconds(12.1));
  t.table.Told(t.key, At(3), absl::Seconds(12.5));  // waits
  t.table.Told(t.key, At(4), absl::Seconds(12.6));  // in its place
  EXPECT_EQ(t.steps, (std::vector<int64_t>{1, 2}));
  t.table.Flush(absl::Seconds(13));
  EXPECT_EQ(t.steps, (std::vector<int64_t>{1, 2}));
  t.table.Flush(absl::Seconds(13.2));
  t.table.Flush(absl::Seconds(15));
  EXPECT_EQ(t.steps, (std::vector<int64_t>{1, 2, 4}));
}

TEST(ProgressTable, TellsTheNewestOfAllAtAHello) {
  Table t;
  t.table.Told(t.key, At(1), absl::Seconds(10));
  t.table.Told(t.key, At(2), absl::Seconds(10.1));
  t.table.Told({"job", 1, 7, 1}, At(5), absl::Seconds(10));
  t.table.Told({"job", 1, 7, 2}, At(6), absl::Seconds(10));
  t.table.Forget({"job", 1, 7, 2});
  std::vector<v1::WorkerMessage> words(1);
  t.table.Introduce(words);
  ASSERT_EQ(words.size(), 3);
  EXPECT_EQ(words[1].rank_progress().step(), 2);
  EXPECT_EQ(words[1].rank_progress().rank().epoch(), 7);
  EXPECT_EQ(words[2].rank_progress().step(), 5);
}

TEST(ProgressTable, IsSilentOnceItIsStopped) {
  Table t;
  t.table.Stop();
  t.table.Told(t.key, At(1), absl::Seconds(10));
  EXPECT_TRUE(t.steps.empty());
}

}  // namespace
}  // namespace mega::daemon
