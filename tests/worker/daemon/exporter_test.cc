#include "worker/daemon/exporter.h"

#include "base/tls/expiry_notice.h"
#include "gmock/gmock.h"
#include "tests/worker/daemon/daemon_fixture.h"

namespace mega::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Served(Exporter& exporter) {
  EXPECT_TRUE(exporter.Serve({"127.0.0.1", 0}).ok());
  return Scrape(exporter.address());
}

TEST(Exporter, SaysWhenTheCertificateExpiresIfThereIsOne) {
  Exporter of_tls("node-a", absl::FromUnixSeconds(86400));
  EXPECT_THAT(Served(of_tls), HasSubstr(std::string(tls::kExpirySeries) + " 86400"));
  Exporter of_plain_text("node-a");
  EXPECT_THAT(Served(of_plain_text), Not(HasSubstr(tls::kExpirySeries)));
}

}  // namespace
}  // namespace mega::daemon
