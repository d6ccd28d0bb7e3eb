#include "base/log.h"

#include "gtest/gtest.h"

namespace mega::log {
namespace {

std::string Written(void (*write)()) {
  ::testing::internal::CaptureStderr();
  write();
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, WhatIsWrittenAsDebugOrInfoIsRoutine) {
  Init("tester", Level::kDebug);
  EXPECT_TRUE(IsRoutine(Written([] { Debug("a message"); })));
  EXPECT_TRUE(IsRoutine(Written([] { Info("a rank began", {{"rank", 1}}); })));
  EXPECT_FALSE(IsRoutine(Written([] { Warn("a disk is slow"); })));
  EXPECT_FALSE(IsRoutine(Written([] { Error("a disk is full"); })));
}

TEST(Log, NoOtherLineIsRoutine) {
  for (const std::string_view line :
       {"", "I", "2026-01-31T12:00:00.000000Z I", "2026-01-31T12:00:00.000000Z Ix",
        "2026-01-31 12:00:00.000000Z I engine x", "terminate called: I"}) {
    EXPECT_FALSE(IsRoutine(line)) << line;
  }
}

}  // namespace
}  // namespace mega::log
