#include "worker/daemon/last_words.h"

#include "gtest/gtest.h"

namespace mega::daemon {
namespace {

constexpr char kRoutine[] =
    "2026-01-31T12:00:00.000000Z I engine a checkpoint is written step=20\n";

TEST(LastWords, AreTheLastThreeLines) {
  EXPECT_EQ(LastLines(""), "");
  EXPECT_EQ(LastLines("\n \r\n"), "");
  EXPECT_EQ(LastLines("one"), "one");
  EXPECT_EQ(LastLines("\none\n"), "one");
  EXPECT_EQ(LastLines("one\ntwo\r\n\n  three \nfour\n"), "two\n  three\nfour");
}

// Case: the cause of a rank that was killed was that it had written a checkpoint.
TEST(LastWords, AreNotWhatItToldAsRoutine) {
  const std::string routine = kRoutine;
  EXPECT_EQ(LastLines(routine), "");
  EXPECT_EQ(LastLines("terminate called\n" + routine + routine + routine + routine),
            "terminate called");
}

TEST(LastWords, AreTheEndsOfLongLines) {
  EXPECT_EQ(LastLines(std::string(5000, 'a') + "b"), std::string(1023, 'a') + "b");
  EXPECT_EQ(LastLines(std::string(5000, 'a') + "\n" + std::string(1000, 'b')),
            std::string(24, 'a') + "\n" + std::string(1000, 'b'));
}

}  // namespace
}  // namespace mega::daemon
