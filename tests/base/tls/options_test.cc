// What is said of TLS on a command line is meant, or refused.
#include "base/tls/options.h"

#include "gmock/gmock.h"
#include "tests/base/command_line/parse.h"

namespace mega::tls {
namespace {

using ::testing::HasSubstr;

Outcome ParseInto(Options& options, std::vector<std::string> words) {
  Program program("mega-x", "What it does", "mega-x");
  AddOptions(program, options);
  AddMetricsOption(program, options);
  return Parse(program, std::move(words));
}

TEST(TlsOptions, AnEmptyFileIsNoWayToPlainText) {
  for (const std::string flag : {"--tls-ca", "--tls-cert", "--tls-key"}) {
    Options options;
    const Outcome outcome = ParseInto(options, {flag, ""});
    EXPECT_EQ(outcome.code, kExitBadUsage) << flag;
    EXPECT_THAT(outcome.err, HasSubstr(flag + " is empty"));
    EXPECT_EQ(ParseInto(options, {flag + "="}).code, kExitBadUsage) << flag;
  }
}

TEST(TlsOptions, InsecureAndCertificatesExcludeEachOther) {
  Options options;
  ASSERT_EQ(ParseInto(options, {"--insecure"}).code, std::nullopt);
  EXPECT_TRUE(CheckOneAsked(options).ok());
  ASSERT_EQ(ParseInto(options, {"--insecure", "--tls-ca", "FILE"}).code, std::nullopt);
  EXPECT_THAT(CheckOneAsked(options).message(), HasSubstr("--insecure-metrics"));
  Options metrics;
  ASSERT_EQ(ParseInto(metrics, {"--insecure-metrics", "--tls-ca", "FILE"}).code, std::nullopt);
  EXPECT_TRUE(CheckOneAsked(metrics).ok());
}

}  // namespace
}  // namespace mega::tls
