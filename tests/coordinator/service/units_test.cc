// Parts that need no server.
#include "coordinator/service/listen_address.h"
#include "coordinator/service/log_router.h"
#include "coordinator/service/page_token.h"
#include "coordinator/service/rpc_status.h"
#include "gmock/gmock.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

TEST(ListenAddress, ReadsHostAndPort) {
  const auto v4 = ParseListenAddress("--listen", "127.0.0.1:7070");
  ASSERT_TRUE(v4.ok());
  EXPECT_EQ(v4->host, "127.0.0.1");
  EXPECT_EQ(v4->port, 7070);
  const auto v6 = ParseListenAddress("--listen", "[::1]:0");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->ToString(), "[::1]:0");
  for (const char* bad : {"", "7070", "host:", ":1", "::1:5", "h:65536", "h:-1", "h:1x"}) {
    EXPECT_FALSE(ParseListenAddress("--listen", bad).ok()) << bad;
  }
}

TEST(ListenAddress, OnlyLoopbackMayBePlain) {
  for (const char* loopback : {"127.0.0.1:0", "localhost:0", "[::1]:0", "127.8.9.1:0"}) {
    EXPECT_TRUE(ParseListenAddress("--listen", loopback)->is_loopback()) << loopback;
  }
  for (const char* open : {"0.0.0.0:0", "[::]:0", "node7:0", "10.0.0.1:0"}) {
    EXPECT_FALSE(ParseListenAddress("--listen", open)->is_loopback()) << open;
  }
}

TEST(PageToken, IsBoundToItsQuery) {
  const std::string token = MakePageToken("jobs in a", {"1", "uid"});
  std::vector<std::string> place;
  EXPECT_TRUE(ReadPageToken(token, "jobs in a", 2, &place).ok());
  EXPECT_EQ(place, (std::vector<std::string>{"1", "uid"}));
  EXPECT_FALSE(ReadPageToken(token, "jobs in b", 2, &place).ok());
  EXPECT_FALSE(ReadPageToken(token, "jobs in a", 1, &place).ok());
  EXPECT_TRUE(ReadPageToken("", "jobs in a", 2, &place).ok());
  EXPECT_TRUE(place.empty());
}

TEST(RpcStatus, DetailsFitTheTrailersThatClientsAccept) {
  std::vector<spec::Violation> violations;
  for (int i = 0; i < 1000; ++i) {
    violations.push_back({"field." + std::to_string(i), std::string(2000, 'x')});
  }
  const grpc::Status status = SpecInvalid(violations);
  // 8 KiB is gRPC's default for all trailers; binary ones grow by a third.
  EXPECT_LT(status.error_details().size() * 4 / 3 + status.error_message().size(), 8'000u);
  const auto bad = BadRequestOf(status);
  EXPECT_THAT(bad.field_violations().rbegin()->description(), testing::HasSubstr("more"));
}

class StepClock : public Clock {
 public:
  absl::Time WallNow() const override { return absl::UnixEpoch() + now; }
  absl::Duration BootNow() const override { return now; }
  absl::Duration now = absl::Hours(1);
};

TEST(LogRouter, CutsAReaderThatTakesNothing) {
  StepClock clock;
  LogRouter router(clock);
  const auto buffer = router.NewBuffer([] {});
  v1::LogChunk chunk;
  chunk.set_stream_id(router.Open(buffer));
  chunk.set_data(std::string(256 << 10, 'x'));
  int taken = 0;
  while (router.Deliver(chunk, [] {}) == LogRouter::Delivery::kTaken) ++taken;
  EXPECT_EQ(taken, 4);
  clock.now += absl::Seconds(9);
  router.Tick();
  EXPECT_FALSE(buffer->cut());
  clock.now += absl::Seconds(2);
  router.Tick();
  EXPECT_TRUE(buffer->cut());
  EXPECT_EQ(router.Deliver(chunk, [] {}), LogRouter::Delivery::kTaken);  // and forgotten
  LogBuffer::Item item;
  EXPECT_FALSE(buffer->Pop(item));
  router.Close(chunk.stream_id());
  EXPECT_EQ(router.Deliver(chunk, [] {}), LogRouter::Delivery::kUnknown);
}

}  // namespace
}  // namespace mega::service
