// Who dials knows who answers.
#include "base/tls/credentials.h"

#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "mega/v1/cluster.grpc.pb.h"
#include "tests/support/test_pki.h"

namespace mega::tls {
namespace {

using ::testing::HasSubstr;

const PeerName kCoordinator{PeerName::Kind::kCoordinator, ""};
const PeerName kNode1{PeerName::Kind::kNode, "n1"};

// A server that shows a certificate, and has nothing to say.
class Server {
 public:
  explicit Server(const Identity& identity) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", ServerCredentials(&identity), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~Server() { server_->Shutdown(std::chrono::system_clock::now()); }
  // UNIMPLEMENTED: it was believed.
  grpc::Status Dial(const Identity& identity, const PeerName& expected,
                    const grpc::ChannelArguments& arguments = {}) const {
    const auto stub = v1::ClusterService::NewStub(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port_), ChannelCredentials(&identity, expected), arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::GetVersionResponse version;
    return stub->GetVersion(&context, v1::GetVersionRequest(), &version);
  }

 private:
  v1::ClusterService::Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(ChannelCredentials, BelieveACoordinatorAtItsHost) {
  const mega::testing::TestPki pki;
  const Server server(*pki.Coordinator());
  EXPECT_EQ(server.Dial(*pki.User("ada"), kCoordinator).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST(ChannelCredentials, ANodeIsNoCoordinatorWhateverHostsItHas) {
  const mega::testing::TestPki pki;
  const Server server(*pki.Make(kNode1, {"localhost", "127.0.0.1"}));
  const grpc::Status status = server.Dial(*pki.User("ada"), kCoordinator);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("is of node 'n1', and a coordinator is meant"));
}

TEST(ChannelCredentials, ACoordinatorOfAnotherHostIsRefused) {
  const mega::testing::TestPki pki;
  const Server server(*pki.Make(kCoordinator, {"other.example.org", "127.0.0.2"}));
  EXPECT_EQ(server.Dial(*pki.User("ada"), kCoordinator).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

// A name of DNS knows no case, and that of a node does.
TEST(ChannelCredentials, ANodeIsWhoWasMeant) {
  const mega::testing::TestPki pki;
  const Server server(*pki.Node("n1"));
  const auto code = [&](const PeerName& meant) {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(NodeServerName(meant.name));
    return server.Dial(*pki.Node("n2"), meant, arguments).error_code();
  };
  EXPECT_EQ(code(kNode1), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(code({PeerName::Kind::kNode, "N1"}), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(code({PeerName::Kind::kNode, "n3"}), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace mega::tls
