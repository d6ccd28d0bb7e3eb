// Every message that a worker may send, wrong in one place, about ranks that run: a message about
// nothing that is there is looked at no further.
#include "fmt/core.h"
#include "gmock/gmock.h"
#include "tests/coordinator/core/checkpoint_part.h"
#include "tests/coordinator/service/fake_worker.h"
#include "tests/coordinator/service/fixture.h"
#include "tests/coordinator/service/mutations.h"

namespace mega::service {
namespace {

using google::protobuf::FieldDescriptor;

constexpr int kRanks = 3;  // more than a node of the hellos below has devices

v1::CheckpointPart Part(const v1::StartRanks& of, int64_t step, int64_t rank) {
  v1::CheckpointPart part = core::RowPart(step, rank, std::ssize(of.plan().ranks()));
  part.set_job_uid(of.job_uid());
  part.set_attempt(of.attempt());
  part.set_epoch(of.epoch());
  return part;
}

class HostileMessagesTest : public ServiceTest {
 protected:
  void SetUp() override {
    StartCoordinator();
    workers_ = v1::WorkerService::NewStub(
        grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
    bystanders_worker_.Connect(address());
    bystander_ = Start("bystander", 1, bystanders_worker_);
    bystanders_events_ = Events("bystander", 0, /*follow=*/false).size();
  }

  v1::StartRanks Start(const std::string& name, int ranks, FakeWorker& worker) {
    MustSubmit(Request(name, ranks, 1'000'000));
    v1::Command start;
    while (start.start_ranks().job_name() != name) {
      if (!worker.AwaitCommand(v1::Command::kStartRanks, &start)) {
        ADD_FAILURE() << name << " was not started: " << GetJob(name).reason();
        return {};
      }
    }
    worker.Ready(start.start_ranks());
    EXPECT_TRUE(worker.Report(start.start_ranks(), 1, 2).ok());
    AwaitPhase(name, v1::JOB_PHASE_RUNNING);
    return start.start_ranks();
  }

  // The hostile worker, in session; another one where a message has cost the last its place.
  FakeWorker& Hostile() {
    if (hostile_ != nullptr && hostile_->AwaitDecisions()) return *hostile_;
    hostile_ = std::make_unique<FakeWorker>(fmt::format("hostile-{}", ++count_), kRanks);
    hostile_->Connect(address());
    EXPECT_TRUE(hostile_->AwaitDecisions());
    return *hostile_;
  }

  // Ranks that run on it: of another job where a message has ended the last.
  const v1::StartRanks& Victim() {
    const FakeWorker* before = hostile_.get();
    Hostile();
    const bool is_new = hostile_.get() != before;
    if (!victim_.job_name().empty()) {
      const v1::Job job = GetJob(victim_.job_name());
      if (!is_new && job.phase() == v1::JOB_PHASE_RUNNING &&
          job.attempts().rbegin()->number() == victim_.attempt() &&
          job.attempts().rbegin()->state() == v1::ATTEMPT_STATE_RUNNING) {
        return victim_;
      }
      v1::Job cancelled;
      Cancel(victim_.job_name(), &cancelled);
      if (!is_new) hostile_.reset();
      Hostile();
    }
    victim_ = Start(fmt::format("victim-{}", count_), kRanks, *hostile_);
    return victim_;
  }

  // A good message of that kind, about rank 0.
  v1::WorkerMessage About(const v1::StartRanks& ranks, const FieldDescriptor& kind) {
    ++step_;
    v1::WorkerMessage message;
    if (kind.number() == v1::WorkerMessage::kCheckpointPartFieldNumber) {
      *message.mutable_checkpoint_part() = Part(ranks, step_, 0);
      return message;
    }
    message.GetReflection()->MutableMessage(&message, &kind);
    Fill(message, {.numbers = {{"attempt", ranks.attempt()},
                               {"epoch", ranks.epoch()},
                               {"rank", 0},
                               {"step", step_},
                               {"heartbeat_seq", step_}},
                   .strings = {{"job_uid", ranks.job_uid()}, {"node", "w1"}, {"check", "disk"}}});
    return message;
  }

  void ExpectBystanderUnharmed(const std::string& after) {
    const v1::Job job = GetJob("bystander");
    EXPECT_EQ(job.phase(), v1::JOB_PHASE_RUNNING) << after << ": " << job.reason();
    EXPECT_EQ(job.attempts_size(), 1) << after;
    EXPECT_TRUE(job.checkpoints().empty()) << after;
    const std::vector<v1::JobEvent> events = Events("bystander", 0, /*follow=*/false);
    EXPECT_EQ(events.size(), bystanders_events_)
        << after << ": " << (events.empty() ? "" : events.back().message());
  }
  void ExpectStillServing() {
    hostile_.reset();
    const v1::StartRanks ranks = Victim();
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      v1::WorkerMessage message;
      *message.mutable_checkpoint_part() = Part(ranks, 5, rank);
      hostile_->Send(message);
    }
    EXPECT_TRUE(hostile_->AwaitDecisions());
    v1::Command committed;
    EXPECT_TRUE(hostile_->AwaitCommand(v1::Command::kCheckpointCommitted, &committed));
    hostile_->Exit(ranks, 0);
    AwaitPhase(ranks.job_name(), v1::JOB_PHASE_SUCCEEDED);
  }

  template <typename F>
  void ForEachKind(const F& visit) {
    const auto& kinds = *v1::WorkerMessage::descriptor()->FindOneofByName("kind");
    for (int i = 0; i < kinds.field_count(); ++i) visit(*kinds.field(i));
  }

  std::unique_ptr<v1::WorkerService::Stub> workers_;
  FakeWorker bystanders_worker_{"w1", 1};
  v1::StartRanks bystander_;
  size_t bystanders_events_ = 0;
  std::unique_ptr<FakeWorker> hostile_;
  v1::StartRanks victim_;
  int count_ = 0;
  int64_t step_ = 2;
};

TEST_F(HostileMessagesTest, AnyFieldOfAMessageInASessionMayBeWrong) {
  ForEachKind([&](const FieldDescriptor& kind) {
    for (const Mutation& mutation : MutationsOf(About(Victim(), kind))) {
      SCOPED_TRACE(mutation.where);
      const v1::StartRanks ranks = Victim();
      v1::WorkerMessage message = About(ranks, kind);
      // What completes a checkpoint is looked at most closely.
      for (int64_t rank = 1; message.has_checkpoint_part() && rank < kRanks; ++rank) {
        v1::WorkerMessage good;
        *good.mutable_checkpoint_part() = Part(ranks, step_, rank);
        hostile_->Send(good);
      }
      mutation.apply(message);
      hostile_->Send(message);
      hostile_->AwaitDecisions();
    }
    ExpectBystanderUnharmed(kind.name());
  });
  ExpectStillServing();
}

TEST_F(HostileMessagesTest, AnyFieldOfAHelloMayBeWrong) {
  const FieldDescriptor& kind = *v1::WorkerMessage::descriptor()->FindFieldByName("hello");
  for (const bool is_own : {false, true}) {
    // Of a node that nobody knew of, and of one that runs ranks.
    const auto hello = [&] {
      const v1::StartRanks ranks = Victim();
      v1::WorkerMessage message = About(ranks, kind);
      v1::Hello own = hostile_->NextHello();
      *message.mutable_hello()->mutable_running() = own.running();
      message.mutable_hello()->set_heartbeat_seq(own.heartbeat_seq());
      if (is_own) {
        message.mutable_hello()->mutable_exited()->Clear();
        message.mutable_hello()->set_last_command_seq(own.last_command_seq());
        *message.mutable_hello()->mutable_node() = own.node();
      } else {
        message.mutable_hello()->mutable_node()->set_name("newcomer");
      }
      return message;
    };
    for (const Mutation& mutation : MutationsOf(hello())) {
      SCOPED_TRACE(mutation.where);
      v1::WorkerMessage message = hello();
      mutation.apply(message);
      const auto context = Context();
      const auto session = workers_->Session(context.get());
      session->Write(message);
      v1::CoordinatorMessage answer;
      session->Read(&answer);  // a lease, a refusal or the end: it was decided
      context->TryCancel();
      while (session->Read(&answer)) {
      }
      session->Finish();
      if (is_own) hostile_->Connect(address());
    }
    ExpectBystanderUnharmed("hellos");
  }
  ExpectStillServing();
}

TEST_F(HostileMessagesTest, AnyFieldOfAStepReportMayBeWrong) {
  const auto report = [&] {
    v1::StepReport good;
    const v1::StartRanks& ranks = Victim();
    Fill(good, {.numbers = {{"attempt", ranks.attempt()},
                            {"epoch", ranks.epoch()},
                            {"step", ++step_},
                            {"total_steps", 1'000'000}},
                .strings = {{"job_uid", ranks.job_uid()}}});
    return good;
  };
  for (const Mutation& mutation : MutationsOf(report())) {
    SCOPED_TRACE(mutation.where);
    v1::StepReport wrong = report();
    mutation.apply(wrong);
    const auto context = Context();
    v1::PushStepsResponse response;
    const auto stream = workers_->PushSteps(context.get(), &response);
    stream->Write(wrong);
    stream->Write(report());
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::INVALID_ARGUMENT)
        << status.error_message();
  }
  ExpectBystanderUnharmed("step reports");
  ExpectStillServing();
}

TEST_F(HostileMessagesTest, AnyFieldOfALogChunkMayBeWrong) {
  v1::LogChunk shape;
  for (const Mutation& mutation : MutationsOf(shape)) {
    SCOPED_TRACE(mutation.where);
    const v1::StartRanks& ranks = Victim();
    v1::StreamLogsRequest request;
    request.set_name(ranks.job_name());
    request.add_ranks(0);
    const auto context = Context();
    const auto reader = jobs_->StreamLogs(context.get(), request);
    v1::Command asked;
    ASSERT_TRUE(hostile_->AwaitCommand(v1::Command::kStreamLog, &asked));
    v1::LogChunk good;
    good.set_stream_id(asked.stream_log().stream_id());
    good.set_offset(1 << 20);
    good.set_data("text");
    v1::LogChunk wrong = good;
    mutation.apply(wrong);
    good.set_end(true);
    if (!hostile_->PushLogs({wrong, good}).ok()) context->TryCancel();
    v1::LogChunk chunk;
    while (reader->Read(&chunk)) {
    }
    EXPECT_NE(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  ExpectStillServing();
}

// A worker may speak of its own ranks alone, right or wrong.
TEST_F(HostileMessagesTest, AWorkerHasNoSayAboutRanksOfOthers) {
  ForEachKind([&](const FieldDescriptor& kind) {
    std::vector<Mutation> mutations = MutationsOf(About(bystander_, kind));
    mutations.push_back({"nothing", [](google::protobuf::Message&) {}});
    for (const Mutation& mutation : mutations) {
      v1::WorkerMessage message = About(bystander_, kind);
      mutation.apply(message);
      Hostile().Send(message);
      hostile_->AwaitDecisions();
    }
    ExpectBystanderUnharmed(kind.name());
  });
  EXPECT_TRUE(bystanders_worker_.AwaitDecisions());
}

}  // namespace
}  // namespace mega::service
