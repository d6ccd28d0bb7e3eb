#include "cli/spec/scalar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/nearest.h"

namespace mega::cli {
namespace {

TEST(Nearest, FindsSlipsAndLeavesStrangersAlone) {
  const std::vector<std::string> words = {"steps", "seed", "tokens", "global_batch_size"};
  EXPECT_EQ(Nearest("stesp", words), "steps");
  EXPECT_EQ(Nearest("step", words), "steps");
  EXPECT_EQ(Nearest("globalBatchSize", words), "global_batch_size");
  EXPECT_EQ(Nearest("learning_rate", words), "");
  EXPECT_EQ(Nearest("", words), "");
  EXPECT_EQ(EditDistance("kitten", "sitting", 10), 3u);
  EXPECT_EQ(EditDistance("ab", "ba", 10), 1u);
  EXPECT_EQ(EditDistance("abcdef", "uvwxyz", 2), 3u);
}

TEST(Scalar, IntegersAreExactOrRefused) {
  EXPECT_EQ(*ParseInteger("9223372036854775807", ""), INT64_MAX);
  EXPECT_EQ(*ParseInteger("-9223372036854775808", ""), INT64_MIN);
  EXPECT_FALSE(ParseInteger("9223372036854775808", "").ok());
  EXPECT_FALSE(ParseInteger("-9223372036854775809", "").ok());
  EXPECT_EQ(*ParseInteger("80Gi", "bytes"), int64_t{80} << 30);
  EXPECT_EQ(*ParseInteger("1.5Gi", "bytes"), int64_t{3} << 29);
  EXPECT_EQ(*ParseInteger("0.5B", "tokens"), 500'000'000);
  EXPECT_EQ(*ParseInteger("1.000", ""), 1);
  EXPECT_EQ(*ParseInteger("100e-2", ""), 1);
  EXPECT_EQ(*ParseInteger("0", ""), 0);
  EXPECT_EQ(*ParseInteger("0.0e5", ""), 0);
  for (const char* bad : {"", "-", ".", "e5", "1e", "1e+", "1 ", " 1", "1k", "0x1", "1_000", "1.1",
                          "١", "1e5000000000", "--1", "1e-3", "00"})
    EXPECT_FALSE(ParseInteger(bad, "").ok()) << bad;
  EXPECT_FALSE(ParseInteger("0.3Ki", "bytes").ok());
}

TEST(Scalar, DurationsRoundTrip) {
  for (const char* text : {"0s", "1s", "90s", "0.25s", "-1.5s", "86400s"})
    EXPECT_EQ(FormatDuration(*ParseDuration(text)), text);
  EXPECT_EQ(FormatDuration(*ParseDuration("1d2h3m4s5ms")), "93784.005s");
  EXPECT_EQ(FormatDuration(*ParseDuration("7")), "7s");
  for (const char* bad : {"", "s", "1x", "1h-30m", "1 h", "1h 30m"})
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
}

TEST(Scalar, NumbersRoundTrip) {
  for (const double number : {0.1, 1e-30, 3e300, 1.0 / 3, -0.0})
    EXPECT_EQ(*ParseNumber(FormatNumber(number)), number);
}

}  // namespace
}  // namespace mega::cli
