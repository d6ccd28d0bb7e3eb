#include "tests/worker/engine/main/scripted_worker.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include "coordinator/planner/planner.h"
#include "coordinator/planner/spec/spec.h"
#include "worker/engine/main/rank.h"

namespace mega::engine {

ScriptedWorker::ScriptedWorker(const testing::TempDir& dir, v1::StartTraining start,
                               Options options)
    : socket_(dir / fmt::format("worker-{}.sock", start.rank().rank())),
      start_(std::move(start)),
      options_(options) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  MEGA_CHECK(server_ != nullptr);
}

ScriptedWorker::~ScriptedWorker() { server_->Shutdown(std::chrono::system_clock::now()); }

void ScriptedWorker::Send(const v1::TrainerMessage& message) {
  MutexLock lock(mu_);
  if (stream_ != nullptr) stream_->Write(message);
}

std::vector<v1::EngineMessage> ScriptedWorker::heard() const {
  MutexLock lock(mu_);
  return heard_;
}

v1::EngineMessage ScriptedWorker::WaitFor(
    const std::function<bool(const v1::EngineMessage&)>& is) const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  MutexLock lock(mu_);
  while (true) {
    for (const v1::EngineMessage& message : heard_)
      if (is(message)) return message;
    MEGA_CHECK(std::chrono::steady_clock::now() < deadline);
    changed_.WaitUntil(mu_, deadline);
  }
}

std::vector<v1::StepReport> ScriptedWorker::steps() const {
  std::vector<v1::StepReport> steps;
  for (const v1::EngineMessage& message : heard())
    if (message.has_step()) steps.push_back(message.step());
  return steps;
}

std::vector<v1::Manifest> ScriptedWorker::committed() const {
  MutexLock lock(mu_);
  return committed_;
}

grpc::Status ScriptedWorker::Attach(grpc::ServerContext*, Stream* stream) {
  {
    MutexLock lock(mu_);
    stream_ = stream;
    v1::TrainerMessage order;
    *order.mutable_start() = start_;
    stream->Write(order);
  }
  v1::EngineMessage message;
  while (stream->Read(&message)) {
    Answer(message);
    MutexLock lock(mu_);
    heard_.push_back(message);
    changed_.NotifyAll();
  }
  MutexLock lock(mu_);
  stream_ = nullptr;
  return grpc::Status::OK;
}

void ScriptedWorker::Answer(const v1::EngineMessage& message) {
  v1::TrainerMessage answer;
  if (message.has_ready() && options_.connects) {
    for (const v1::Manifest& manifest : options_.kept) {
      v1::TrainerMessage told;
      *told.mutable_checkpoint_committed()->mutable_manifest() = manifest;
      Send(told);
    }
    answer.mutable_connect();
  }
  if (message.has_checkpoint_part() && message.checkpoint_part().step() == options_.rejects) {
    answer.mutable_checkpoint_rejected()->set_step(options_.rejects);
    answer.mutable_checkpoint_rejected()->set_reason("a hole in w");
  } else if (message.has_checkpoint_part() && options_.commits &&
             message.checkpoint_part().step() >= options_.first_commit) {
    const v1::CheckpointPart& part = message.checkpoint_part();
    v1::Manifest& manifest = *answer.mutable_checkpoint_committed()->mutable_manifest();
    manifest.set_version(1);
    manifest.set_job_uid(part.job_uid());
    manifest.set_attempt(part.attempt());
    manifest.set_epoch(part.epoch());
    manifest.set_step(part.step());
    manifest.set_directory(part.directory());
    *manifest.mutable_tensors() = part.tensors();
    *manifest.mutable_slices() = part.slices();
    *manifest.mutable_files() = part.files();
    *manifest.mutable_state() = part.state();
    const auto printed =
        google::protobuf::util::MessageToJsonString(start_.spec(), manifest.mutable_spec_json());
    MEGA_CHECK_OK(printed);
    MutexLock lock(mu_);
    committed_.push_back(manifest);
  }
  if (answer.kind_case() != v1::TrainerMessage::KIND_NOT_SET) Send(answer);
}

v1::JobSpec TinyJob(const testing::TempDir& dir) {
  std::string words;
  for (int i = 0; i < 2000; ++i) words += "line " + std::to_string(i * i % 977) + " of a text\n";
  testing::WriteFile(dir / "text.txt", words);
  v1::JobSpec spec;
  spec.mutable_model()->set_num_layers(1);
  spec.mutable_model()->set_hidden_size(16);
  spec.mutable_model()->set_ffn_hidden_size(32);
  spec.mutable_model()->set_num_attention_heads(2);
  spec.mutable_data()->add_paths(dir / "text.txt");
  spec.mutable_data()->set_seq_length(16);
  spec.mutable_data()->set_order("sequential");
  spec.mutable_training()->set_steps(4);
  spec.mutable_training()->set_global_batch_size(4);
  spec.mutable_training()->set_eval_steps(0);
  spec.mutable_optimizer()->set_lr(1e-30);
  spec.mutable_checkpoint()->set_directory(dir / "checkpoints");
  return spec;
}

v1::StartTraining StartOf(const v1::JobSpec& spec, const testing::TempDir& dir) {
  v1::StartTraining start;
  *start.mutable_spec() = spec::ApplyDefaults(spec);
  v1::Node node;
  node.set_name("nodes/a");
  for (int64_t i = 0; i < std::max<int64_t>(spec.parallelism().data_parallel_size(), 1); ++i) {
    v1::Device& device = *node.add_devices();
    device.set_index(i);
    device.set_kind("cpu");
    device.set_threads(1);
    device.set_memory_bytes(int64_t{1} << 34);
  }
  const auto plan = planner::MakePlan(start.spec(), {.nodes = {node}});
  MEGA_CHECK_OK(plan);
  *start.mutable_plan() = *plan;
  start.mutable_rank()->set_job_uid("0123456789");
  start.mutable_rank()->set_attempt(1);
  start.mutable_rank()->set_epoch(1);
  start.set_job_name("tiny");
  start.set_run_directory(dir / "run");
  return start;
}

absl::Status RunRank(const v1::StartTraining& start, const ScriptedWorker& worker) {
  const SystemClock clock;
  TrainerLink link({.socket = worker.socket(), .rank = start.rank()}, clock);
  MEGA_RETURN_IF_ERROR(link.WaitForStart(absl::Seconds(30)).status());
  MEGA_ASSIGN_OR_RETURN(const std::unique_ptr<Rank> rank, Rank::Build(start, link));
  return rank->Run();
}

}  // namespace mega::engine
