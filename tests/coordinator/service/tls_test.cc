// Who may call what, when everybody shows a certificate.
#include "base/tls/credentials.h"
#include "coordinator/service/access.h"
#include "gmock/gmock.h"
#include "tests/coordinator/service/fake_worker.h"
#include "tests/coordinator/service/fixture.h"
#include "tests/support/test_pki.h"

namespace mega::service {
namespace {

using ::testing::HasSubstr;

class TlsTest : public ServiceTest {
 protected:
  void SetUp() override {
    options_.identity = pki_.Coordinator();
    StartCoordinator();
  }
  std::shared_ptr<grpc::Channel> Channel(const std::shared_ptr<const tls::Identity>& identity) {
    return grpc::CreateChannel(address(), Credentials(identity));
  }
  static std::shared_ptr<grpc::ChannelCredentials> Credentials(
      const std::shared_ptr<const tls::Identity>& identity) {
    return tls::ChannelCredentials(identity.get(), {tls::PeerName::Kind::kCoordinator, ""});
  }
  grpc::Status List(const std::shared_ptr<const tls::Identity>& identity) {
    v1::ListJobsResponse jobs;
    return v1::JobService::NewStub(Channel(identity))
        ->ListJobs(Context().get(), v1::ListJobsRequest(), &jobs);
  }
  // The first answer to a hello of that name, or how the session ended.
  struct Answer {
    v1::CoordinatorMessage message;
    grpc::Status end;
  };
  Answer Hello(const std::shared_ptr<const tls::Identity>& identity, const std::string& name) {
    const auto context = Context();
    const auto workers = v1::WorkerService::NewStub(Channel(identity));
    const auto session = workers->Session(context.get());
    v1::WorkerMessage message;
    v1::Node& node = *message.mutable_hello()->mutable_node();
    node.set_name(name);
    node.set_boot_id("boot");
    node.set_incarnation(1);
    node.set_version("0.1.0");
    session->Write(message);
    Answer answer;
    if (session->Read(&answer.message)) context->TryCancel();
    v1::CoordinatorMessage rest;
    while (session->Read(&rest)) {
    }
    answer.end = session->Finish();
    return answer;
  }

  mega::testing::TestPki pki_;
};

TEST_F(TlsTest, AUserOfTheAuthorityIsLetInAndNamed) {
  EXPECT_TRUE(List(pki_.User("ada")).ok());
  v1::WhoAmIResponse me;
  const auto cluster = v1::ClusterService::NewStub(Channel(pki_.User("ada")));
  ASSERT_TRUE(cluster->WhoAmI(Context().get(), v1::WhoAmIRequest(), &me).ok());
  EXPECT_EQ(me.user(), "user:ada");
}

TEST_F(TlsTest, WhoShowsNoCertificateOfTheAuthorityIsNotHeard) {
  EXPECT_EQ(List(nullptr).error_code(), grpc::StatusCode::UNAVAILABLE);
  const mega::testing::TestPki other;
  EXPECT_EQ(List(other.User("ada")).error_code(), grpc::StatusCode::UNAVAILABLE);
  // One that believes the coordinator, and shows a certificate of its own making.
  tls::Identity forged = *other.User("ada");
  forged.authority = pki_.authority().certificate;
  EXPECT_EQ(List(std::make_shared<const tls::Identity>(forged)).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, AWorkerIsNoUserAndAUserNoWorker) {
  const grpc::Status of_node = List(pki_.Node("n1"));
  EXPECT_EQ(of_node.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ErrorInfoOf(of_node).reason(), "CALLER_NOT_ALLOWED");
  EXPECT_THAT(of_node.error_message(), HasSubstr("node 'n1', and only users may call this"));
  const Answer of_user = Hello(pki_.User("ada"), "ada");
  EXPECT_EQ(of_user.end.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(of_user.end.error_message(), HasSubstr("user 'ada', and only workers may call this"));
}

TEST_F(TlsTest, AWorkerSpeaksForItsOwnNode) {
  EXPECT_TRUE(Hello(pki_.Node("n1"), "n1").message.has_lease());
  const v1::CoordinatorMessage refused = Hello(pki_.Node("n2"), "n1").message;
  EXPECT_TRUE(refused.reject().fatal());
  EXPECT_THAT(refused.reject().reason(),
              HasSubstr("says that it is node 'n1', and its certificate is of node 'n2'"));
}

TEST_F(TlsTest, AWorkerReportsOfItsOwnRanks) {
  FakeWorker worker("n1", 1);
  worker.Connect(address(), Credentials(pki_.Node("n1")));
  v1::Job job;
  ASSERT_TRUE(v1::JobService::NewStub(Channel(pki_.User("ada")))
                  ->SubmitJob(Context().get(), Request("job"), &job)
                  .ok());
  v1::Command start;
  ASSERT_TRUE(worker.AwaitCommand(v1::Command::kStartRanks, &start));
  worker.Ready(start.start_ranks());
  EXPECT_TRUE(worker.Report(start.start_ranks(), 1, 2).ok());

  for (const int64_t attempt : {1, 2}) {  // the newest, and one that does not exist yet
    v1::StepReport forged;
    forged.set_job_uid(job.uid());
    forged.set_attempt(attempt);
    forged.set_epoch(start.start_ranks().epoch());
    forged.set_step(3);
    const auto context = Context();
    v1::PushStepsResponse response;
    const auto stream =
        v1::WorkerService::NewStub(Channel(pki_.Node("n2")))->PushSteps(context.get(), &response);
    stream->Write(forged);
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << attempt;
    EXPECT_EQ(ErrorInfoOf(status).reason(), "RANK_OF_ANOTHER_NODE");
    EXPECT_THAT(status.error_message(), HasSubstr("does not run on node 'n2'"));
  }
}

// Whatever a connection says of itself: over TLS nobody is let in who is not known.
TEST(Access, NobodyIsNoUserAndNoWorker) {
  for (const tls::PeerName::Kind wanted :
       {tls::PeerName::Kind::kUser, tls::PeerName::Kind::kNode}) {
    const grpc::Status status = CheckCaller(std::nullopt, wanted);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(status.error_message(), HasSubstr("no part of a cluster"));
  }
}

TEST_F(TlsTest, ACoordinatorIsNeitherUserNorWorker) {
  EXPECT_NE(List(pki_.Coordinator()).error_code(), grpc::StatusCode::OK);
}

TEST(PlainText, BeyondLoopbackIsRefusedWithoutTls) {
  TempDir dir;
  CoordinatorOptions options;
  options.state_dir = dir.path();
  options.listen = "0.0.0.0:0";
  options.metrics_listen = "";
  const auto plain = Coordinator::Start(options);
  ASSERT_FALSE(plain.ok());
  EXPECT_THAT(plain.status().message(), HasSubstr("--tls-ca"));
  options.identity = mega::testing::TestPki().Coordinator();
  const auto encrypted = Coordinator::Start(options);
  EXPECT_TRUE(encrypted.ok()) << encrypted.status().ToString();
}

TEST(PlainText, WhatIsAllowedForMetricsIsForNothingElse) {
  TempDir dir;
  CoordinatorOptions options;
  options.state_dir = dir.path();
  options.insecure_metrics = true;
  options.listen = "0.0.0.0:0";
  EXPECT_FALSE(Coordinator::Start(options).ok());
  options.listen = "127.0.0.1:0";
  options.metrics_listen = "0.0.0.0:0";
  const auto started = Coordinator::Start(options);
  EXPECT_TRUE(started.ok()) << started.status().ToString();
}

}  // namespace
}  // namespace mega::service
