// Parts that need no server.
#include <future>
#include <set>

#include "coordinator/service/log_router.h"
#include "coordinator/service/page_token.h"
#include "coordinator/service/rpc_status.h"
#include "coordinator/service/session_table.h"
#include "gmock/gmock.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

TEST(Parent, IsOneNamespaceOrAll) {
  std::string name_space = "before";
  for (const char* all : {"", "namespaces/-"}) {
    EXPECT_TRUE(ReadParent(all, &name_space).ok()) << all;
    EXPECT_EQ(name_space, "") << all;
  }
  EXPECT_TRUE(ReadParent("namespaces/team1", &name_space).ok());
  EXPECT_EQ(name_space, "team1");
  for (const char* wrong : {"team1", "namespaces/", "namespaces/../x", "namespaces/Team", "x/-"}) {
    EXPECT_EQ(ReadParent(wrong, &name_space).error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << wrong;
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
  EXPECT_THAT(bad.field_violations().rbegin()->description(), ::testing::HasSubstr("more"));
}

class NoWriter : public SessionWriter {
 public:
  void Send(v1::CoordinatorMessage) override {}
  void Close() override {}
};

TEST(SessionTable, ARefusedSessionLeavesTheGoodOneInItsPlace) {
  SessionTable table;
  v1::CoordinatorMessage lease, reject;
  lease.mutable_lease();
  reject.mutable_reject();
  const int64_t good = table.Open("n", std::make_shared<NoWriter>());
  EXPECT_EQ(table.SessionOf("n"), 0);  // nobody has answered its hello yet
  table.Send(good, lease);
  EXPECT_EQ(table.SessionOf("n"), good);

  const int64_t refused = table.Open("n", std::make_shared<NoWriter>());
  table.Send(refused, reject);
  EXPECT_EQ(table.SessionOf("n"), good);
  table.Closed(refused);
  EXPECT_EQ(table.SessionOf("n"), good);

  const int64_t next = table.Open("n", std::make_shared<NoWriter>());
  table.Send(next, lease);
  table.Closed(good);  // the end of the one before comes late
  EXPECT_EQ(table.SessionOf("n"), next);
  table.Closed(next);
  EXPECT_EQ(table.SessionOf("n"), 0);
}

class StepClock : public Clock {
 public:
  absl::Time WallNow() const override { return absl::UnixEpoch() + now; }
  absl::Duration BootNow() const override { return now; }
  absl::Duration now = absl::Hours(1);
};

// Delivers until the buffer takes no more.
int Overfill(LogRouter& router, const v1::LogChunk& chunk, const std::function<void()>& go_on) {
  int taken = 0;
  while (router.Deliver(chunk, go_on) == LogRouter::Delivery::kTaken && taken < 100'000) ++taken;
  return taken;
}

// Case: only the bytes of the log counted, so chunks without any came without end.
TEST(LogRouter, AllThatAChunkHoldsCounts) {
  StepClock clock;
  LogRouter router(clock);
  v1::LogChunk chunk;
  const auto empty = router.NewBuffer([] {});
  chunk.set_stream_id(router.Open(empty));
  EXPECT_LT(Overfill(router, chunk, [] {}), 10'000);
  const auto words = router.NewBuffer([] {});
  chunk.set_stream_id(router.Open(words));
  chunk.set_error(std::string(256 << 10, 'x'));
  EXPECT_EQ(Overfill(router, chunk, [] {}), 4);
}

TEST(LogRouter, AWorkerGoesOnWhenHalfTheBufferWasRead) {
  StepClock clock;
  LogRouter router(clock);
  const auto buffer = router.NewBuffer([] {});
  v1::LogChunk chunk;
  chunk.set_stream_id(router.Open(buffer));
  chunk.set_data(std::string(256 << 10, 'x'));
  std::promise<void> went_on;
  EXPECT_EQ(Overfill(router, chunk, [&] { went_on.set_value(); }), 4);
  std::future<void> go_on = went_on.get_future();
  LogBuffer::Item item;
  ASSERT_TRUE(buffer->Pop(item));
  ASSERT_TRUE(buffer->Pop(item));
  EXPECT_EQ(go_on.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  ASSERT_TRUE(buffer->Pop(item));
  go_on.wait();
  EXPECT_EQ(router.Deliver(chunk, [] {}), LogRouter::Delivery::kTaken);
  for (int left = 0; left < 2; ++left) ASSERT_TRUE(buffer->Pop(item));
  EXPECT_FALSE(buffer->Pop(item));
}

TEST(LogRouter, AStreamBreaksOnceHoweverOftenItIsTold) {
  StepClock clock;
  LogRouter router(clock);
  const auto buffer = router.NewBuffer([] {});
  const std::string id = router.Open(buffer);
  for (int i = 0; i < 1000; ++i) router.Broken(id);
  LogBuffer::Item item;
  EXPECT_TRUE(buffer->Pop(item));
  EXPECT_TRUE(item.broken);
  EXPECT_FALSE(buffer->Pop(item));
}

// Case: they were counted up, so any worker could speak for the one that was asked.
TEST(LogRouter, StreamsHaveNamesThatNobodyCanGuess) {
  StepClock clock;
  LogRouter router(clock);
  const auto buffer = router.NewBuffer([] {});
  std::set<std::string> ends;
  for (int i = 0; i < 100; ++i) {
    const std::string id = router.Open(buffer);
    EXPECT_EQ(id.size(), 26u);  // 130 bits
    ends.insert(id.substr(13));
  }
  EXPECT_EQ(ends.size(), 100u);
}

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
