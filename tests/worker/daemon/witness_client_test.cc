#include "worker/daemon/witness_client.h"

#include <grpcpp/grpcpp.h>

#include "gmock/gmock.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/daemon/daemon_fixture.h"

namespace mega::daemon {
namespace {

class Witness final : public v1::WitnessService::Service {
 public:
  explicit Witness(const std::string& listen) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Witness() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int asked() const { return asked_; }

 private:
  grpc::Status QueryWitness(grpc::ServerContext*, const v1::QueryWitnessRequest*,
                            v1::QueryWitnessResponse* response) override {
    ++asked_;
    response->set_no_session(true);
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::atomic<int> asked_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// The coordinator names witnesses by what they said of themselves.
TEST(WitnessClient, AsksNobodyWhoseAddressIsNoHostAndPort) {
  const mega::testing::TempDir folder;
  const std::string socket = "unix:" + (folder / "socket");
  const Witness honest("127.0.0.1:0"), other(socket);
  Mutex mu;
  std::vector<int64_t> rounds;
  WitnessClient client({}, /*identity=*/nullptr, [&](const lease::Input& input) {
    MutexLock lock(mu);
    rounds.push_back(std::get<lease::Answered>(input).round);
  });
  v1::WitnessSet witnesses;
  witnesses.add_witnesses()->set_address(socket);
  witnesses.add_witnesses()->set_address("127.0.0.1:99999");
  witnesses.add_witnesses()->set_address(honest.address());
  client.Ask(7, witnesses);
  EXPECT_TRUE(Eventually([&] {
    MutexLock lock(mu);
    return rounds == std::vector<int64_t>{7};
  }));
  client.Stop();
  EXPECT_EQ(honest.asked(), 1);
  EXPECT_EQ(other.asked(), 0);
}

}  // namespace
}  // namespace mega::daemon
