// The worker's end of TrainerService on a Unix socket, for one rank: gives the start order,
// connects at once, keeps what the rank says, and commits checkpoints of one part as a coordinator
// would.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "mega/v1/trainer.grpc.pb.h"
#include "tests/support/temp_dir.h"

namespace mega::engine {

class ScriptedWorker : public v1::TrainerService::Service {
 public:
  struct Options {
    bool connects = true;            // answers RankReady
    bool commits = true;             // answers a checkpoint part
    int64_t rejects = -1;            // the checkpoint of this step, for the reason "a hole in w"
    int64_t first_commit = 0;        // says nothing to parts of earlier steps
    std::vector<v1::Manifest> kept;  // told before it connects, as checkpoints of earlier attempts
  };
  ScriptedWorker(const testing::TempDir& dir, v1::StartTraining start)
      : ScriptedWorker(dir, std::move(start), Options()) {}
  ScriptedWorker(const testing::TempDir& dir, v1::StartTraining start, Options options);
  ~ScriptedWorker() override;

  const std::string& socket() const { return socket_; }
  void Send(const v1::TrainerMessage& message);
  // All messages so far.
  std::vector<v1::EngineMessage> heard() const;
  // The first message that `is` likes, waited for; aborts the test after a minute.
  v1::EngineMessage WaitFor(const std::function<bool(const v1::EngineMessage&)>& is) const;
  std::vector<v1::StepReport> steps() const;
  std::vector<v1::Manifest> committed() const;

  grpc::Status Attach(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::TrainerMessage, v1::EngineMessage>* stream) override;

 private:
  using Stream = grpc::ServerReaderWriter<v1::TrainerMessage, v1::EngineMessage>;
  void Answer(const v1::EngineMessage& message) MEGA_EXCLUDES(mu_);

  const std::string socket_;
  const v1::StartTraining start_;
  const Options options_;
  mutable Mutex mu_;
  mutable CondVar changed_;
  Stream* stream_ MEGA_GUARDED_BY(mu_) = nullptr;
  std::vector<v1::EngineMessage> heard_ MEGA_GUARDED_BY(mu_);
  std::vector<v1::Manifest> committed_ MEGA_GUARDED_BY(mu_);
  std::unique_ptr<grpc::Server> server_;
};

// A job of one rank on a small text in `dir`, sequential data, planned as the coordinator would.
// A weight in it does not move: its learning rate is nothing, so a loss says which samples made it.
v1::JobSpec TinyJob(const testing::TempDir& dir);
// The order for rank 0. `spec` without defaults.
v1::StartTraining StartOf(const v1::JobSpec& spec, const testing::TempDir& dir);

// Builds the rank and runs it to its end against `worker`.
absl::Status RunRank(const v1::StartTraining& start, const ScriptedWorker& worker);

}  // namespace mega::engine
