// What a worker does for others that cannot reach the coordinator.
#include <grpcpp/grpcpp.h>

#include <future>

#include "gmock/gmock.h"
#include "tests/support/test_pki.h"
#include "tests/worker/daemon/daemon_fixture.h"
#include "worker/daemon/channel.h"
#include "worker/daemon/witness_service.h"

namespace mega::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The coordinator of this test answers no relayed heartbeat.
class WitnessServiceTest : public DaemonTest {
 protected:
  struct Asked {
    grpc::ClientContext context;
    v1::RelayHeartbeatRequest request;
    v1::RelayHeartbeatResponse response;
    std::promise<grpc::Status> done;
    std::future<grpc::Status> status = done.get_future();

    bool HasEnded() { return status.wait_for(std::chrono::seconds(0)) == kReady; }
    static constexpr auto kReady = std::future_status::ready;
  };

  void SetUp() override {
    DaemonTest::SetUp();
    stub_ = v1::WitnessService::NewStub(
        grpc::CreateChannel(daemon_->address(), grpc::InsecureChannelCredentials()));
    ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.heartbeats >= 1; }));
  }
  void TearDown() override {
    for (const auto& asked : asked_) asked->context.TryCancel();
    for (const auto& asked : asked_) asked->status.wait();
  }

  Asked& Ask(const std::string& node, int64_t seq) {
    Asked& asked = *asked_.emplace_back(std::make_unique<Asked>());
    asked.request.set_node(node);
    asked.request.set_incarnation(7);
    asked.request.set_heartbeat_seq(seq);
    stub_->async()->RelayHeartbeat(&asked.context, &asked.request, &asked.response,
                                   [&](grpc::Status status) { asked.done.set_value(status); });
    return asked;
  }
  std::vector<int64_t> Relayed() {
    std::vector<int64_t> relayed;
    for (const v1::WorkerMessage& message : coordinator_.heard().messages) {
      if (!message.has_relayed_heartbeat()) continue;
      relayed.push_back(message.relayed_heartbeat().heartbeat_seq());
    }
    return relayed;
  }
  Asked& AskAndAwaitRelay(const std::string& node, int64_t seq) {
    Asked& asked = Ask(node, seq);
    EXPECT_TRUE(Eventually([&] {
      const auto relayed = Relayed();
      return std::find(relayed.begin(), relayed.end(), seq) != relayed.end();
    })) << node
        << " " << seq;
    return asked;
  }

  std::unique_ptr<v1::WitnessService::Stub> stub_;
  std::vector<std::unique_ptr<Asked>> asked_;
};

TEST_F(WitnessServiceTest, WhoHasNoNameOfANodeIsRefused) {
  for (const std::string& name :
       {std::string(), std::string("a node"), std::string(1 << 15, 'x')}) {
    Asked& asked = Ask(name, 1);
    const grpc::Status status = asked.status.get();
    asked_.clear();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("node"));
    EXPECT_LT(status.error_message().size(), 1000u);
  }
  EXPECT_THAT(Relayed(), IsEmpty());
}

TEST_F(WitnessServiceTest, OneAskerHoldsAFewCallsTheNewest) {
  AskAndAwaitRelay("node-c", 50);
  for (int64_t seq = 1; seq <= 6; ++seq) AskAndAwaitRelay("node-b", seq);
  EXPECT_EQ(asked_[1]->status.get().error_code(), grpc::StatusCode::OK);
  EXPECT_FALSE(asked_[1]->response.renewed());
  EXPECT_TRUE(asked_[2]->status.get().ok());
  for (const size_t stays : {0, 3, 4, 5, 6}) EXPECT_FALSE(asked_[stays]->HasEnded()) << stays;
  asked_.erase(asked_.begin() + 1, asked_.begin() + 3);
}

// Case: the answer was lost with the session, and the call stayed until its asker gave up.
TEST_F(WitnessServiceTest, WhatTheSessionOwedIsOverWithIt) {
  Asked& asked = AskAndAwaitRelay("node-b", 1);
  coordinator_.Stop();
  ASSERT_EQ(asked.status.wait_for(std::chrono::seconds(20)), Asked::kReady);
  EXPECT_TRUE(asked.status.get().ok());
  EXPECT_FALSE(asked.response.renewed());
  asked_.clear();
}

// Over TLS each side knows which node the other is.
TEST(WitnessOverTls, ANodeAsksForItselfAndOfWhomItMeant) {
  const mega::testing::TestPki pki;
  v1::Node self;
  self.set_name("witness");
  self.set_incarnation(5);
  WitnessService service(self, /*is_tls=*/true,
                         {.no_session = [] { return true; },
                          .relay = [](const v1::RelayedHeartbeat&) { return false; }});
  const auto identity = pki.Node("witness");
  const auto server = Serve(service, {"127.0.0.1", 0}, identity.get());
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  const std::string address = (*server)->address().ToString();
  const auto ask = [&](const std::string& meant, const tls::Identity* caller,
                       const std::string& node) {
    const auto stub = v1::WitnessService::NewStub(MakePeerChannel(address, meant, caller));
    const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(20);
    grpc::ClientContext query_context;
    query_context.set_deadline(deadline);
    v1::QueryWitnessRequest query;
    query.set_node(node);
    v1::QueryWitnessResponse answer;
    const auto code = stub->QueryWitness(&query_context, query, &answer).error_code();
    EXPECT_EQ(answer.no_session(), code == grpc::StatusCode::OK);
    grpc::ClientContext relay_context;
    relay_context.set_deadline(deadline);
    v1::RelayHeartbeatRequest heartbeat;
    heartbeat.set_node(node);
    v1::RelayHeartbeatResponse lease;
    EXPECT_EQ(stub->RelayHeartbeat(&relay_context, heartbeat, &lease).error_code(), code);
    return code;
  };
  const auto n1 = pki.Node("n1");
  EXPECT_EQ(ask("witness", n1.get(), "n1"), grpc::StatusCode::OK);
  EXPECT_EQ(ask("witness", n1.get(), "n2"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ask("witness", pki.User("n1").get(), "n1"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ask("another", n1.get(), "n1"), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ask("witness", nullptr, "n1"), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace mega::daemon
