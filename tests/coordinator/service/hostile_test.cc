// What comes from outside may be anything.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "base/message_size.h"
#include "base/unique_fd.h"
#include "gmock/gmock.h"
#include "tests/coordinator/service/fake_worker.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

using ::testing::HasSubstr;

// Sends bytes to the port of `address` and closes.
void SendRaw(const std::string& address, const std::string& bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(std::stoi(address.substr(address.rfind(':') + 1)));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  close(fd);
}

// Connects, says `bytes` and stays.
UniqueFd Linger(const std::string& address, const std::string& bytes) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(std::stoi(address.substr(address.rfind(':') + 1)));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  (void)!send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return fd;
}

class HostileTest : public ServiceTest {};

TEST_F(HostileTest, HalfOpenConnectionsTakeNeitherTheApiNorMetricsAway) {
  StartCoordinator();
  const std::string& metrics = coordinator_->metrics_address();
  std::vector<UniqueFd> half_open;
  for (int i = 0; i < 225; ++i) {
    half_open.push_back(Linger(address(), i % 2 == 0 ? "" : "PRI * HTTP/2.0\r\n"));
    half_open.push_back(Linger(metrics, i % 2 == 0 ? "" : "GET /metrics HTTP/1.1\r\n"));
  }
  const absl::Time begin = absl::Now();
  MustSubmit(Request("unharmed"));
  const UniqueFd scrape = Linger(metrics, "GET /metrics HTTP/1.1\r\n\r\n");
  char answer[32] = {};
  EXPECT_GT(recv(scrape.get(), answer, sizeof(answer) - 1, 0), 0);
  EXPECT_THAT(std::string(answer), HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
}

TEST_F(HostileTest, RandomBytesOnEveryPortDoNoHarm) {
  StartCoordinator();
  std::mt19937_64 random(7);
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (int round = 0; round < 100; ++round) {
    std::string bytes(random() % 3000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (round % 2 == 0) bytes = preface + bytes;
    SendRaw(address(), bytes);
    SendRaw(coordinator_->metrics_address(), bytes);
  }
  MustSubmit(Request("unharmed"));
}

TEST_F(HostileTest, SessionMustBeginWithAHello) {
  StartCoordinator();
  const auto stub = v1::WorkerService::NewStub(
      grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  const auto context = Context();
  const auto stream = stub->Session(context.get());
  v1::WorkerMessage message;
  message.mutable_heartbeat()->set_seq(1);
  stream->Write(message);
  v1::CoordinatorMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(ErrorInfoOf(stream->Finish()).reason(), "HELLO_EXPECTED");
}

// Case: sessions that said nothing stayed for ever, each with its memory.
TEST_F(HostileTest, ASessionWithoutAHelloIsEnded) {
  options_.hello_deadline = absl::Seconds(1);
  StartCoordinator();
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  const auto stub = v1::WorkerService::NewStub(
      grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  const auto context = Context();
  const auto silent = stub->Session(context.get());
  v1::CoordinatorMessage answer;
  EXPECT_FALSE(silent->Read(&answer));
  const grpc::Status status = silent->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ErrorInfoOf(status).reason(), "HELLO_EXPECTED");
  EXPECT_THAT(status.error_message(), HasSubstr("within 1s"));
  EXPECT_TRUE(worker.AwaitDecisions()) << "it has said hello";
}

// Gives the message, and what lies in it, fields of a later release, or of nobody.
void AddUnknownFields(google::protobuf::Message& message, size_t bytes) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(
      1000, std::string(bytes, 'x'));
}

// Case: they were kept for ever with the node, the job or the namespace, 60 MiB at a time.
TEST_F(HostileTest, WhatThisReleaseDoesNotKnowOfIsNotKept) {
  constexpr size_t kBytes = 200'000;
  StartCoordinator();
  const auto stub = v1::WorkerService::NewStub(
      grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  const auto context = Context();
  const auto session = stub->Session(context.get());
  v1::WorkerMessage message;
  message.mutable_hello()->mutable_node()->set_name("w0");
  AddUnknownFields(*message.mutable_hello()->mutable_node()->add_devices(), kBytes);
  session->Write(message);
  v1::CoordinatorMessage answer;
  ASSERT_TRUE(session->Read(&answer));
  ASSERT_TRUE(answer.has_lease()) << answer.ShortDebugString();
  EXPECT_LT(AwaitNode("w0").ByteSizeLong(), 1000u);

  v1::UpdateNamespaceRequest update;
  update.mutable_namespace_()->set_name("team");
  AddUnknownFields(*update.mutable_namespace_(), kBytes);
  v1::Namespace limits;
  ASSERT_TRUE(cluster_->UpdateNamespace(Context().get(), update, &limits).ok());
  EXPECT_LT(limits.ByteSizeLong(), 1000u);

  v1::SubmitJobRequest submit = Request("job");
  AddUnknownFields(*submit.mutable_metadata(), kBytes);
  AddUnknownFields(*submit.mutable_spec()->mutable_data(), kBytes);
  submit.mutable_metadata()->set_owner(std::string(kBytes, 'o'));  // ours to say
  EXPECT_LT(MustSubmit(submit).ByteSizeLong(), 20'000u);
  EXPECT_EQ(MustSubmit(submit).uid(), GetJob("job").uid()) << "again";
  context->TryCancel();
  session->Finish();
}

TEST_F(HostileTest, AStepReportThatIsTooLargeIsRefused) {
  StartCoordinator();
  const auto stub = v1::WorkerService::NewStub(
      grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  const auto context = Context();
  v1::PushStepsResponse response;
  const auto writer = stub->PushSteps(context.get(), &response);
  v1::StepReport report;
  report.set_job_uid(std::string(5000, 'u'));
  writer->Write(report);
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(ErrorInfoOf(status).reason(), "REPORT_TOO_LARGE");
  EXPECT_THAT(status.error_message(), HasSubstr("may have 4096"));
}

TEST_F(HostileTest, NodeNamesAreChecked) {
  StartCoordinator();
  const auto stub = v1::WorkerService::NewStub(
      grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  for (const std::string& name : {std::string("bad\nname"), std::string("a/b"), std::string(".."),
                                  std::string(), std::string(1 << 20, 'n')}) {
    const auto context = Context();
    const auto stream = stub->Session(context.get());
    v1::WorkerMessage message;
    message.mutable_hello()->mutable_node()->set_name(name);
    stream->Write(message);
    v1::CoordinatorMessage answer;
    ASSERT_TRUE(stream->Read(&answer));
    EXPECT_TRUE(answer.reject().fatal());  // or the worker would dial for ever
    EXPECT_THAT(answer.reject().reason(), HasSubstr("parts joined by dots"));
    EXPECT_LT(answer.reject().reason().size(), 1000u);
    EXPECT_FALSE(stream->Read(&answer));
    EXPECT_TRUE(stream->Finish().ok());
  }
}

TEST_F(HostileTest, WhatIsTooLargeIsRefused) {
  StartCoordinator();
  v1::SubmitJobRequest request = Request("fat");
  request.mutable_spec()->mutable_data()->add_paths(std::string(17 << 20, 'p'));
  v1::Job job;
  const grpc::Status spec = Submit(request, &job);
  EXPECT_EQ(spec.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(BadRequestOf(spec).field_violations(0).field(), "spec");
  request.mutable_spec()->mutable_data()->set_paths(0, std::string(kMostMessageBytes, 'p'));
  EXPECT_EQ(Submit(request, &job).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  MustSubmit(Request("lean"));
}

TEST_F(HostileTest, PortInUseIsNamed) {
  StartCoordinator();
  CoordinatorOptions second;
  second.state_dir = dir_.path() + "/second";
  second.listen = address();
  const auto started = Coordinator::Start(second);
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.status().message(), HasSubstr(address()));
  EXPECT_THAT(started.status().message(), HasSubstr("--listen"));
  second.listen = "127.0.0.1:0";
  second.metrics_listen = coordinator_->metrics_address();
  const auto metrics = Coordinator::Start(second);
  ASSERT_FALSE(metrics.ok());
  EXPECT_THAT(metrics.status().message(), HasSubstr("--metrics-listen"));
}

TEST_F(HostileTest, SecondCoordinatorOnOneStateFolderIsRefused) {
  StartCoordinator();
  CoordinatorOptions second;
  second.state_dir = options_.state_dir;
  const auto started = Coordinator::Start(second);
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.status().message(), HasSubstr(options_.state_dir));
}

TEST_F(HostileTest, PlainTextBeyondLoopbackMustBeAskedFor) {
  options_.listen = "0.0.0.0:0";
  const auto refused = Coordinator::Start(options_);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("--insecure"));
  options_.insecure = true;
  EXPECT_TRUE(Coordinator::Start(options_).ok());
}

}  // namespace
}  // namespace mega::service
