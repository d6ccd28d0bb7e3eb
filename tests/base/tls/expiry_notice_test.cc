#include "base/tls/expiry_notice.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace mega::tls {
namespace {

TEST(ExpiryNotice, ComesTwoWeeksAheadOnceADay) {
  Identity identity;
  identity.not_after = absl::Now() + absl::Hours(24 * 365);
  const absl::Time from = identity.not_after - absl::Hours(14 * 24);
  ExpiryNotice notice(std::make_shared<const Identity>(identity));
  EXPECT_FALSE(notice.Due(from - absl::Seconds(1)));
  EXPECT_TRUE(notice.Due(from));
  EXPECT_FALSE(notice.Due(from + absl::Hours(23)));
  EXPECT_TRUE(notice.Due(from + absl::Hours(24)));
  EXPECT_TRUE(notice.Due(identity.not_after + absl::Hours(1))) << "and when it is too late";
}

TEST(ExpiryNotice, PlainTextExpiresNever) {
  EXPECT_FALSE(ExpiryNotice(nullptr).Due(absl::InfiniteFuture()));
}

}  // namespace
}  // namespace mega::tls
