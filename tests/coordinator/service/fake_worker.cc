#include "tests/coordinator/service/fake_worker.h"

#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

constexpr std::chrono::milliseconds kHeartbeat{100};

std::chrono::steady_clock::time_point Deadline() {
  return std::chrono::steady_clock::now() + absl::ToChronoSeconds(kPatience);
}

}  // namespace

FakeWorker::FakeWorker(std::string name, int devices) : name_(std::move(name)) {
  node_.set_name(name_);
  node_.set_boot_id("boot-of-" + name_);
  node_.set_incarnation(absl::ToUnixNanos(absl::Now()));
  node_.set_version("0.1.0");
  node_.add_numeric_libraries("none 1");
  for (int i = 0; i < devices; ++i) {
    v1::Device& device = *node_.add_devices();
    device.set_index(i);
    device.set_kind("cpu");
    device.set_threads(1);
  }
}

FakeWorker::~FakeWorker() { Disconnect(); }

void FakeWorker::Connect(const std::string& address,
                         std::shared_ptr<grpc::ChannelCredentials> credentials) {
  Disconnect();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  stub_ = v1::WorkerService::NewStub(
      grpc::CreateCustomChannel(address, std::move(credentials), arguments));
  context_ = std::make_unique<grpc::ClientContext>();
  stream_ = stub_->Session(context_.get());
  {
    MutexLock lock(mu_);
    has_ended_ = false;
  }
  v1::WorkerMessage message;
  *message.mutable_hello() = NextHello();
  Send(message);
  reader_ = std::jthread([this] { ReadAll(); });
  heart_ = std::jthread([this](std::stop_token stop) { KeepBeating(stop); });
}

v1::Hello FakeWorker::NextHello() {
  v1::Hello hello;
  MutexLock lock(mu_);
  *hello.mutable_node() = node_;
  hello.set_last_command_seq(last_command_);
  hello.set_heartbeat_seq(++heartbeat_);
  for (const v1::RankRef& rank : running_) *hello.add_running() = rank;
  for (const v1::RankExited& exited : exited_) *hello.add_exited() = exited;
  return hello;
}

void FakeWorker::Disconnect() {
  if (!stream_) return;
  heart_.request_stop();
  heart_.join();
  context_->TryCancel();
  if (reader_.joinable()) reader_.join();
  stream_.reset();
}

void FakeWorker::Send(const v1::WorkerMessage& message) {
  MutexLock lock(write_mu_);
  if (stream_) stream_->Write(message);
}

int64_t FakeWorker::Beat() {
  v1::WorkerMessage message;
  int64_t seq = 0;
  {
    MutexLock lock(mu_);
    seq = ++heartbeat_;
  }
  message.mutable_heartbeat()->set_seq(seq);
  Send(message);
  return seq;
}

void FakeWorker::KeepBeating(std::stop_token stop) {
  const std::stop_callback wake(stop, [this] {
    MutexLock lock(mu_);
    changed_.NotifyAll();
  });
  while (!stop.stop_requested()) {
    Beat();
    const auto next = std::chrono::steady_clock::now() + kHeartbeat;
    MutexLock lock(mu_);
    while (!stop.stop_requested() && changed_.WaitUntil(mu_, next)) {
    }
  }
}

void FakeWorker::ReadAll() {
  for (v1::CoordinatorMessage message; stream_->Read(&message);) {
    if (message.has_command()) {
      Apply(message.command());
    } else if (message.has_lease()) {
      MutexLock lock(mu_);
      leased_ = std::max(leased_, message.lease().heartbeat_seq());
      changed_.NotifyAll();
    }
  }
  end_ = stream_->Finish();
  MutexLock lock(mu_);
  has_ended_ = true;
  changed_.NotifyAll();
}

void FakeWorker::Apply(const v1::Command& command) {
  {
    MutexLock lock(mu_);
    if (command.seq() != 0) {
      if (command.seq() <= last_command_) return;
      last_command_ = command.seq();
    }
    ++seen_;
    if (command.has_start_ranks()) {
      for (int64_t rank : command.start_ranks().ranks()) {
        running_.push_back(Ref(command.start_ranks(), rank));
      }
    }
    commands_.push_back(command);
    changed_.NotifyAll();
  }
  if (command.seq() == 0) return;
  v1::WorkerMessage ack;
  ack.mutable_command_ack()->set_seq(command.seq());
  Send(ack);
}

bool FakeWorker::AwaitLease(int64_t heartbeat_seq) {
  const auto deadline = Deadline();
  MutexLock lock(mu_);
  while (leased_ < heartbeat_seq) {
    if (has_ended_ || !changed_.WaitUntil(mu_, deadline)) return false;
  }
  return true;
}

bool FakeWorker::AwaitDecisions() { return AwaitLease(Beat()); }

bool FakeWorker::AwaitCommand(v1::Command::KindCase kind, v1::Command* command) {
  const auto deadline = Deadline();
  MutexLock lock(mu_);
  while (true) {
    const auto it = std::find_if(commands_.begin(), commands_.end(),
                                 [&](const v1::Command& c) { return c.kind_case() == kind; });
    if (it != commands_.end()) {
      *command = *it;
      commands_.erase(it);
      return true;
    }
    if (!changed_.WaitUntil(mu_, deadline)) return false;
  }
}

v1::RankRef FakeWorker::Ref(const v1::StartRanks& start, int64_t rank) const {
  v1::RankRef ref;
  ref.set_job_uid(start.job_uid());
  ref.set_attempt(start.attempt());
  ref.set_epoch(start.epoch());
  ref.set_rank(rank);
  return ref;
}

void FakeWorker::Ready(const v1::StartRanks& start) {
  for (int64_t rank : start.ranks()) {
    v1::WorkerMessage message;
    *message.mutable_rank_ready()->mutable_rank() = Ref(start, rank);
    message.mutable_rank_ready()->set_address("address of rank " + std::to_string(rank));
    Send(message);
  }
}

grpc::Status FakeWorker::Report(const v1::StartRanks& start, int64_t from, int64_t to) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
  v1::PushStepsResponse response;
  const auto writer = stub_->PushSteps(&context, &response);
  for (int64_t step = from; step <= to; ++step) {
    v1::StepReport report;
    report.set_job_uid(start.job_uid());
    report.set_attempt(start.attempt());
    report.set_epoch(start.epoch());
    report.set_rank(0);
    report.set_step(step);
    report.set_total_steps(start.plan().steps());
    report.set_loss(5.0 / static_cast<double>(step));
    report.set_consumed_tokens(step * 32);
    report.set_tokens_per_s(1000);
    report.set_mfu(0.25);
    report.set_step_seconds(0.032);
    *report.mutable_time() = ToProto(absl::Now());
    writer->Write(report);
  }
  writer->WritesDone();
  return writer->Finish();
}

void FakeWorker::Exit(const v1::StartRanks& start, int32_t code, const std::string& message) {
  for (int64_t rank : start.ranks()) {
    v1::WorkerMessage exited;
    *exited.mutable_rank_exited()->mutable_rank() = Ref(start, rank);
    exited.mutable_rank_exited()->mutable_exit()->set_code(code);
    exited.mutable_rank_exited()->mutable_exit()->set_message(message);
    {
      MutexLock lock(mu_);
      std::erase_if(running_, [&](const v1::RankRef& ref) {
        return ref.epoch() == start.epoch() && ref.rank() == rank;
      });
      exited_.push_back(exited.rank_exited());
    }
    Send(exited);
  }
}

grpc::Status FakeWorker::PushLogs(const std::vector<v1::LogChunk>& chunks) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
  v1::PushLogsResponse response;
  const auto writer = stub_->PushLogs(&context, &response);
  for (const v1::LogChunk& chunk : chunks) {
    if (!writer->Write(chunk)) break;
  }
  writer->WritesDone();
  return writer->Finish();
}

int64_t FakeWorker::commands_seen() const {
  MutexLock lock(mu_);
  return seen_;
}

grpc::Status FakeWorker::session_end() {
  if (reader_.joinable()) reader_.join();
  return end_;
}

}  // namespace mega::service
