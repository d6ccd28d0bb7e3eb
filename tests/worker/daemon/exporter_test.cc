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

TEST(Exporter, SaysWhatLogsHaveLost) {
  Exporter exporter("node-a");
  Exporter::Sample sample;
  sample.captured_log_bytes = 100;
  sample.lost_log_bytes = 40;
  exporter.Set(sample);
  EXPECT_THAT(Served(exporter), HasSubstr("mega_log_bytes_lost_total 40"));
}

}  // namespace
}  // namespace mega::daemon
