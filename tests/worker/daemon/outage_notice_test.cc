#include "worker/daemon/outage_notice.h"

#include <functional>

#include "gtest/gtest.h"

namespace mega::daemon {
namespace {

using Kind = OutageNotice::Kind;

// Dials for an hour, five seconds apart.
int LinesInAnHour(OutageNotice& notice, const std::function<Kind(int)>& kind) {
  int lines = 0;
  for (int i = 0; i < 720; ++i) lines += notice.Due(kind(i), absl::Seconds(5 * i));
  return lines;
}

TEST(OutageNotice, ToldAtOnceAndThenOnceAMinute) {
  OutageNotice notice;
  EXPECT_TRUE(notice.Due(Kind::kUnreachable, absl::ZeroDuration()));
  EXPECT_FALSE(notice.Due(Kind::kUnreachable, absl::Seconds(59)));
  EXPECT_TRUE(notice.Due(Kind::kUnreachable, absl::Seconds(60)));
  EXPECT_FALSE(notice.Due(Kind::kUnreachable, absl::Seconds(61)));
  OutageNotice other;
  EXPECT_EQ(LinesInAnHour(other, [](int) { return Kind::kRefused; }), 60);
}

TEST(OutageNotice, ARefusalAfterSilenceAndAnOutageAfterASessionAreNews) {
  OutageNotice notice;
  EXPECT_TRUE(notice.Due(Kind::kUnreachable, absl::ZeroDuration()));
  EXPECT_TRUE(notice.Due(Kind::kRefused, absl::Seconds(1)));
  EXPECT_FALSE(notice.Due(Kind::kRefused, absl::Seconds(2)));
  notice.Over();
  EXPECT_TRUE(notice.Due(Kind::kRefused, absl::Seconds(3)));
}

}  // namespace
}  // namespace mega::daemon
