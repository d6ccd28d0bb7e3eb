// The port is open before the state is loaded, and says so.
#include <future>

#include "coordinator/state/memory_store.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "mega/v1/worker.grpc.pb.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

// Its Load waits until it is let go.
class SlowStore : public state::MemoryStore {
 public:
  absl::StatusOr<core::State> Load() const override {
    loaded_.get_future().wait();
    return MemoryStore::Load();
  }
  void LetGo() { loaded_.set_value(); }

 private:
  mutable std::promise<void> loaded_;
};

// grpc.health.v1.HealthCheckResponse.status, by hand: its stub is not among Debian's headers.
enum Health { kServing = 1, kNotServing = 2, kNoAnswer = -1 };
Health HealthOf(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
  grpc::ByteBuffer request, response;
  {
    grpc::Slice empty("");
    request = grpc::ByteBuffer(&empty, 1);
  }
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request, &response,
                 [&](grpc::Status status) { done.set_value(std::move(status)); });
  grpc::Slice bytes;
  if (!done.get_future().get().ok() || !response.DumpToSingleSlice(&bytes).ok()) return kNoAnswer;
  if (bytes.size() != 2 || bytes.begin()[0] != 0x08) return kNoAnswer;  // field 1, one byte
  return static_cast<Health>(bytes.begin()[1]);
}

class LoadingTest : public ServiceTest {
 protected:
  // Start, in the background, up to the open port.
  void StartUpToTheOpenPort() {
    std::promise<std::string> opened;
    options_.listening = [&](const std::string& address) { opened.set_value(address); };
    starting_ =
        std::async(std::launch::async, [&] { return Coordinator::Start(options_, store_); });
    const std::string address = opened.get_future().get();
    channel_ = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    jobs_ = v1::JobService::NewStub(channel_);
    workers_ = v1::WorkerService::NewStub(channel_);
  }
  void TearDown() override { StopCoordinator(); }  // before the store goes

  SlowStore store_;
  std::future<absl::StatusOr<std::unique_ptr<Coordinator>>> starting_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
};

void ExpectLoading(const grpc::Status& status) {
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("loading its state"));
  EXPECT_EQ(ErrorInfoOf(status).reason(), "STATE_LOADING");
}

TEST_F(LoadingTest, CallsAreToldSoUntilTheStateIsThere) {
  StartUpToTheOpenPort();
  EXPECT_EQ(HealthOf(channel_), kNotServing);
  v1::Job job;
  ExpectLoading(Submit(Request("early"), &job));
  {
    const auto context = Context();
    const auto watch = jobs_->WatchEvents(context.get(), v1::WatchEventsRequest());
    v1::JobEvent event;
    EXPECT_FALSE(watch->Read(&event));
    ExpectLoading(watch->Finish());
  }
  {
    const auto context = Context();
    const auto session = workers_->Session(context.get());
    v1::CoordinatorMessage message;
    EXPECT_FALSE(session->Read(&message));
    ExpectLoading(session->Finish());
  }
  {
    const auto context = Context();
    v1::PushStepsResponse response;
    ExpectLoading(workers_->PushSteps(context.get(), &response)->Finish());
  }

  store_.LetGo();
  auto started = starting_.get();
  ASSERT_TRUE(started.ok()) << started.status().ToString();
  coordinator_ = *std::move(started);
  EXPECT_EQ(HealthOf(channel_), kServing);
  MustSubmit(Request("early"));
}

}  // namespace
}  // namespace mega::service
