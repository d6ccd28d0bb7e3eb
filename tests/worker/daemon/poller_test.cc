#include "worker/daemon/poller.h"

#include <unistd.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mega::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Poller, GivesWhatIsReadableOrAtItsEnd) {
  int pipes[2][2];
  for (auto& ends : pipes) ASSERT_EQ(pipe(ends), 0);
  Poller poller;
  for (const auto& ends : pipes) poller.Add(ends[0]);
  EXPECT_THAT(poller.Wait(milliseconds(0)), IsEmpty());
  ASSERT_EQ(write(pipes[0][1], "x", 1), 1);
  EXPECT_THAT(poller.Wait(seconds(20)), ElementsAre(pipes[0][0]));
  poller.Remove(pipes[0][0]);
  close(pipes[1][1]);
  EXPECT_THAT(poller.Wait(seconds(20)), ElementsAre(pipes[1][0]));
  for (const int fd : {pipes[0][0], pipes[0][1], pipes[1][0]}) close(fd);
}

TEST(Poller, IsWokenOnceForEachWaitHoweverOften) {
  Poller poller;
  std::jthread other([&] {
    for (int i = 0; i < 1000; ++i) poller.Wake();
  });
  other.join();
  const auto before = std::chrono::steady_clock::now();
  EXPECT_THAT(poller.Wait(seconds(60)), IsEmpty());
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(30));
  EXPECT_THAT(poller.Wait(milliseconds(1)), IsEmpty());  // to its end
}

}  // namespace
}  // namespace mega::daemon
