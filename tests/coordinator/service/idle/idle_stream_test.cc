// A stream on which nothing is said for a long time stays, whatever its client's keepalive.
#include <chrono>
#include <thread>

#include "grpcpp/grpcpp.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

// Case: servers allow a ping in five minutes unless told otherwise, and closed long streams of
// clients that looked after their sockets with "too_many_pings". Such a server ends this stream at
// the third ping.
using IdleStreamTest = ServiceTest;

TEST_F(IdleStreamTest, OutlivesItsClientsPings) {
  StartCoordinator();
  const std::string name = MustSubmit(Request("job")).metadata().name();  // waits for a node
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);  // gRPC takes nothing shorter
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as clients of other languages do
  const auto stub = v1::JobService::NewStub(
      grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  v1::WatchEventsRequest request;
  request.set_name(name);
  request.set_follow(true);
  const auto stream = stub->WatchEvents(&context, request);
  v1::JobEvent event;
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.reason(), "SUBMITTED");

  std::this_thread::sleep_for(std::chrono::seconds(55));
  v1::Job job;
  ASSERT_TRUE(Cancel(name, &job).ok());
  while (stream->Read(&event)) {
  }
  const grpc::Status end = stream->Finish();
  EXPECT_TRUE(end.ok()) << end.error_message();
  EXPECT_EQ(event.reason(), "CANCELLED");
}

}  // namespace
}  // namespace mega::service
