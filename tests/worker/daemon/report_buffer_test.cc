#include "worker/daemon/report_buffer.h"

#include "gtest/gtest.h"

namespace mega::daemon {
namespace {

RankKey Rank(int64_t rank) { return {"job", 1, 1, rank}; }

v1::StepReport Step(int64_t rank, int64_t step) {
  v1::StepReport report;
  report.set_rank(rank);
  report.set_step(step);
  return report;
}

std::vector<std::pair<int64_t, int64_t>> TakeAll(ReportBuffer& buffer) {
  std::vector<std::pair<int64_t, int64_t>> all;
  while (const v1::StepReport* report = buffer.TakeUnsent()) {
    all.emplace_back(report->rank(), report->step());
  }
  return all;
}

using Steps = std::vector<std::pair<int64_t, int64_t>>;

TEST(ReportBuffer, GivesReportsInTheOrderTheyCame) {
  ReportBuffer buffer(100);
  buffer.Add(Rank(1), Step(1, 1));
  buffer.Add(Rank(0), Step(0, 1));
  buffer.Add(Rank(0), Step(0, 2));
  buffer.Add(Rank(1), Step(1, 2));
  EXPECT_EQ(TakeAll(buffer), (Steps{{1, 1}, {0, 1}, {0, 2}, {1, 2}}));
  EXPECT_FALSE(buffer.HasUnsent());
}

TEST(ReportBuffer, WhatWasNotConfirmedIsSentAgain) {
  ReportBuffer buffer(100);
  buffer.Add(Rank(0), Step(0, 1));
  TakeAll(buffer);
  buffer.Confirm(buffer.sent());
  buffer.Add(Rank(0), Step(0, 2));
  buffer.Add(Rank(1), Step(1, 2));
  TakeAll(buffer);
  EXPECT_EQ(buffer.Pending(Rank(1)), 1);
  buffer.Rewind();
  EXPECT_TRUE(buffer.HasUnsent());
  EXPECT_EQ(TakeAll(buffer), (Steps{{0, 2}, {1, 2}}));
  buffer.Confirm(buffer.sent());
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_EQ(buffer.Pending(Rank(1)), 0);
}

TEST(ReportBuffer, WhenFullTheOldestOfOtherRanksGoFirst) {
  ReportBuffer buffer(4);
  for (int64_t step = 1; step <= 3; ++step) {
    buffer.Add(Rank(0), Step(0, step));
    buffer.Add(Rank(1), Step(1, step));
  }
  EXPECT_EQ(TakeAll(buffer), (Steps{{0, 1}, {0, 2}, {0, 3}, {1, 3}}));
  EXPECT_EQ(buffer.dropped(), 2);
  EXPECT_EQ(buffer.Pending(Rank(1)), 1);
  for (int64_t step = 4; step <= 6; ++step) buffer.Add(Rank(0), Step(0, step));
  buffer.Rewind();
  EXPECT_EQ(TakeAll(buffer), (Steps{{0, 3}, {0, 4}, {0, 5}, {0, 6}}));
}

}  // namespace
}  // namespace mega::daemon
