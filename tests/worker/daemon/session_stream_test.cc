// What leaves first when a session cannot send as fast as it is told to.
#include "worker/daemon/session_stream.h"

#include <grpcpp/grpcpp.h>

#include <future>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mega::daemon {
namespace {

// Reads nothing but the hello until it is let.
class SlowReader : public v1::WorkerService::Service {
 public:
  SlowReader() {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void Let() { let_.set_value(); }
  // Beside the hello, in their order; set at the end of the call.
  std::vector<v1::WorkerMessage> Read() { return read_.get_future().get(); }

 private:
  grpc::Status Session(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>* stream) override {
    v1::WorkerMessage message;
    stream->Read(&message);
    let_.get_future().wait();
    std::vector<v1::WorkerMessage> read;
    while (stream->Read(&message)) read.push_back(message);
    read_.set_value(std::move(read));
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::promise<void> let_;
  std::promise<std::vector<v1::WorkerMessage>> read_;
  std::unique_ptr<grpc::Server> server_;
};

// A session that has more to send than its connection takes unread.
class SessionStreamTest : public ::testing::Test {
 protected:
  SessionStreamTest() {
    while (!stream_.Idle()) std::this_thread::yield();
    v1::WorkerMessage large;
    large.mutable_rank_ready()->set_address(std::string(32 << 20, 'x'));
    stream_.Send(large);
  }

  SlowReader reader_;
  std::promise<void> ended_;
  SessionStream stream_{{reader_.address()},
                        Hello(),
                        {.message = [](v1::CoordinatorMessage) {},
                         .ended = [this](absl::Status) { ended_.set_value(); }}};

 private:
  static v1::WorkerMessage Hello() {
    v1::WorkerMessage hello;
    hello.mutable_hello();
    return hello;
  }
};

// Case: relays went before everything, and who asked enough kept a worker's exits and acks back.
TEST_F(SessionStreamTest, CarriesTheWordsOfOthersTurnAboutWithItsOwn) {
  for (int64_t seq = 1; seq <= 3; ++seq) {
    v1::WorkerMessage own;
    own.mutable_command_ack()->set_seq(seq);
    stream_.Send(own);
  }
  for (int64_t seq = 1; seq <= 6; ++seq) {
    v1::WorkerMessage of_another;
    of_another.mutable_relayed_heartbeat()->set_heartbeat_seq(seq);
    EXPECT_TRUE(stream_.SendForAnother(of_another));
  }
  stream_.SendHeartbeat(1);
  stream_.Close();
  reader_.Let();
  std::vector<std::string> order;
  for (const v1::WorkerMessage& message : reader_.Read()) {
    if (message.has_heartbeat()) order.push_back("beat");
    if (message.has_command_ack())
      order.push_back(fmt::format("own {}", message.command_ack().seq()));
    if (message.has_relayed_heartbeat()) {
      order.push_back(fmt::format("other {}", message.relayed_heartbeat().heartbeat_seq()));
    }
  }
  EXPECT_THAT(order, ::testing::ElementsAre("beat", "other 1", "own 1", "other 2", "own 2",
                                            "other 3", "own 3", "other 4", "other 5", "other 6"));
  ended_.get_future().wait();
}

TEST_F(SessionStreamTest, HoldsFewWordsOfOthers) {
  v1::WorkerMessage of_another;
  of_another.mutable_relayed_heartbeat()->set_heartbeat_seq(1);
  int taken = 0;
  while (taken < 5000 && stream_.SendForAnother(of_another)) ++taken;
  EXPECT_EQ(taken, 1024);
  stream_.Cancel();
  reader_.Let();
  ended_.get_future().wait();
}

}  // namespace
}  // namespace mega::daemon
