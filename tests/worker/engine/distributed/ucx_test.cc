#ifdef MEGA_TEST_UCX
#include "worker/engine/distributed/ucx.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/listening_addresses.h"
#include "tests/worker/engine/distributed/ranks.h"

namespace mega::distributed {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Addresses = google::protobuf::RepeatedPtrField<v1::RankAddress>;

v1::RankRef Self(int64_t rank, const std::string& job, int64_t attempt, int64_t epoch) {
  v1::RankRef self;
  self.set_rank(rank);
  self.set_job_uid(job);
  self.set_attempt(attempt);
  self.set_epoch(epoch);
  return self;
}

std::unique_ptr<UcxTransport> Make(const v1::RankRef& self) {
  auto transport = UcxTransport::Create(self);
  MEGA_CHECK_OK(transport);
  return *std::move(transport);
}

Addresses AddressOf(int64_t rank, const std::string& address) {
  Addresses addresses;
  addresses.Add()->set_rank(rank);
  addresses.at(0).set_address(address);
  return addresses;
}

TEST(Ucx, APeerOfAnotherJobAttemptOrEpochIsRefused) {
  const auto mine = Make(Self(0, "job", 3, 8));
  for (const auto& [peer, message] : {std::pair{Self(1, "job", 2, 7), "attempt 2, epoch 7"},
                                      std::pair{Self(1, "job", 3, 7), "attempt 3, epoch 7"},
                                      std::pair{Self(1, "other", 3, 8), "another job"},
                                      std::pair{Self(2, "job", 3, 8), "belongs to rank 2"}}) {
    const auto theirs = Make(peer);
    const absl::Status status = mine->Connect(AddressOf(1, theirs->address()));
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("rank 1"), HasSubstr(message)));
  }
}

// Case: a job on one machine was open to the network.
TEST(Ucx, RanksOfOneHostListenToNoOther) {
  ASSERT_THAT(mega::testing::ListeningAddresses(), ::testing::IsEmpty());
  const auto one = UcxTransport::Create(Self(0, "job", 1, 1), /*loopback=*/true);
  const auto two = UcxTransport::Create(Self(1, "job", 1, 1), /*loopback=*/true);
  ASSERT_TRUE(one.ok() && two.ok());
  for (const std::string& address : mega::testing::ListeningAddresses())
    EXPECT_EQ(address, "0100007F");
  std::jthread other(
      [&] { EXPECT_EQ((*two)->Connect(AddressOf(0, (*one)->address())), absl::OkStatus()); });
  EXPECT_EQ((*one)->Connect(AddressOf(1, (*two)->address())), absl::OkStatus());
}

// Case: UCX_TLS=tcp, left over from another program, made the run three times as slow.
TEST(Ucx, TheEnvironmentChangesNothing) {
  setenv("UCX_TLS", "no_such_transport", 1);
  setenv("UCX_NET_DEVICES", "no_such_device", 1);
  EXPECT_EQ(UcxTransport::Create(Self(0, "job", 1, 1)).status(), absl::OkStatus());
  unsetenv("UCX_TLS");
  unsetenv("UCX_NET_DEVICES");
}

TEST(Ucx, AnAddressThatIsNoneIsRefused) {
  const auto mine = Make(Self(0, "job", 1, 1));
  for (const std::string& bytes : {std::string(), std::string(10, 'x'), std::string(100, 'x')})
    EXPECT_FALSE(mine->Connect(AddressOf(1, bytes)).ok());
}

TEST(Ucx, APeerThatNeverConnectsIsNamedAtTheDeadline) {
  const auto mine = Make(Self(0, "job", 1, 1));
  const auto silent = Make(Self(4, "job", 1, 1));
  const absl::Status status =
      mine->Connect(AddressOf(4, silent->address()), absl::Milliseconds(200));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 4"));
}

TEST(Ucx, TwoGroupsOfOneNameAreRefused) {
  const auto world = World::Make("ucx", 1);
  const auto first = world->transport(0).MakeCommunicator(Everybody(1));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(world->transport(0).MakeCommunicator(Everybody(1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mega::distributed
#endif
