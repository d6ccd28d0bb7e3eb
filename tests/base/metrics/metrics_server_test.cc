#include "base/metrics/metrics_server.h"

#include <chrono>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "tests/base/metrics/http_client.h"

namespace mega {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const ListenAddress kAnyPort{"127.0.0.1", 0};

// Case: a library's server looked for its end every two seconds, so each process took as long.
TEST(MetricsServer, EndsAtOnce) {
  const auto begin = std::chrono::steady_clock::now();
  for (const char* host : {"127.0.0.1", "127.0.0.1", "0.0.0.0", "localhost", "127.0.0.1"}) {
    const auto server = MetricsServer::Start({host, 0}, std::make_shared<prometheus::Registry>());
    ASSERT_TRUE(server.ok()) << host << ": " << server.status();
    EXPECT_GT((*server)->address().port, 0);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(MetricsServer, AScrapeIsTheTextFormat) {
  const auto registry = std::make_shared<prometheus::Registry>();
  prometheus::BuildGauge()
      .Name("mega_answer")
      .Help("Forty-two.")
      .Register(*registry)
      .Add({})
      .Set(42);
  const auto server = MetricsServer::Start(kAnyPort, registry);
  ASSERT_TRUE(server.ok());
  mega::testing::HttpClient client((*server)->address().port);
  ASSERT_TRUE(client.Send("GET /metrics HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(client.ReadToEnd(std::chrono::seconds(20)),
              ::testing::Optional(
                  AllOf(HasSubstr("text/plain; version=0.0.4"), HasSubstr("\nmega_answer 42\n"))));
}

TEST(MetricsServer, ATakenPortIsAnErrorWithTheWayOut) {
  const auto registry = std::make_shared<prometheus::Registry>();
  const auto first = MetricsServer::Start(kAnyPort, registry);
  ASSERT_TRUE(first.ok());
  const auto second = MetricsServer::Start((*first)->address(), registry);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr((*first)->address().ToString()), HasSubstr("--metrics-listen"),
                    HasSubstr("port 0")));
}

}  // namespace
}  // namespace mega
