#include "base/proc_stat.h"

#include <unistd.h>

#include "gtest/gtest.h"

namespace mega {
namespace {

constexpr char kRest[] = " 1 7 7 0 -1 4194304 9 0 0 0 1 2 0 0 20 0 1 0 4711 5 6";

TEST(ProcStat, ANameMayHoldBlanksAndBrackets) {
  const auto stat = ParseProcStat(std::string("12 (a) D (b) c) S") + kRest);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->name, "a) D (b) c");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->start_time_ticks, 4711);
}

TEST(ProcStat, WhatIsNoStatLineIsNothing) {
  for (const std::string line : {"", "12", "12 )(", "12 (a", "12 (a)", "12 (a) S 1 2 3",
                                 "12 (a) S 1 7 7 0 -1 4194304 9 0 0 0 1 2 0 0 20 0 1 0 x"}) {
    EXPECT_FALSE(ParseProcStat(line).has_value()) << line;
  }
}

TEST(ProcStat, ThisProcessRunsAndHasBegunAfterTheBoot) {
  EXPECT_GT(StartTimeTicks(getpid()), 0);
  EXPECT_NE(ProcessState(getpid()), 0);
}

TEST(ProcStat, AProcessThatIsNotThereHasNeither) {
  EXPECT_EQ(StartTimeTicks(-1), 0);
  EXPECT_EQ(ProcessState(-1), 0);
}

}  // namespace
}  // namespace mega
