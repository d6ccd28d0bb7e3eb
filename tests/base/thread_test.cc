#include "base/thread.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/no_threads.h"

namespace mega {
namespace {

using ::testing::HasSubstr;

TEST(Thread, RunsWhatItWasGivenAndHearsTheStop) {
  bool ran = false;
  {
    auto thread = StartThread([&](std::stop_token stop) { ran = stop.stop_possible(); });
    ASSERT_TRUE(thread.ok()) << thread.status();
  }
  EXPECT_TRUE(ran);
}

TEST(Thread, ThatTheMachineDoesNotGiveIsAnError) {
  const mega::testing::NoThreads none;
  const auto thread = StartThread([](std::stop_token) {});
  ASSERT_TRUE(absl::IsResourceExhausted(thread.status()));
  EXPECT_THAT(std::string(thread.status().message()), HasSubstr("ulimit -u"));
}

}  // namespace
}  // namespace mega
