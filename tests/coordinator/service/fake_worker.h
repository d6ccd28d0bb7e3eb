// A worker that speaks to a coordinator over real gRPC, with ranks that exist only in a script.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "grpcpp/grpcpp.h"
#include "mega/v1/worker.grpc.pb.h"

namespace mega::service {

class FakeWorker {
 public:
  // Devices 0 … n−1. The identity survives Disconnect, as a worker process does.
  FakeWorker(std::string name, int devices);
  ~FakeWorker();

  // Opens the session: hello with what runs now, then heartbeats.
  void Connect(const std::string& address, std::shared_ptr<grpc::ChannelCredentials> credentials =
                                               grpc::InsecureChannelCredentials());
  // Breaks the session; ranks go on running.
  void Disconnect();
  // What it says, or would say, when it connects; each time as a later heartbeat.
  v1::Hello NextHello();
  // The newest lease of this session answers this heartbeat or a later one. False: not in time, or
  // the session has ended.
  bool AwaitLease(int64_t heartbeat_seq);
  // All that was sent so far has been decided upon. False: as above.
  bool AwaitDecisions();

  // Waits for the next command, acked and already applied to the ranks below.
  bool AwaitCommand(v1::Command::KindCase kind, v1::Command* command);

  // Of the ranks started last.
  void Ready(const v1::StartRanks& start);
  // Rank 0's report of each step in [from, to], over PushSteps; returns with the receipt.
  grpc::Status Report(const v1::StartRanks& start, int64_t from, int64_t to);
  void Exit(const v1::StartRanks& start, int32_t code, const std::string& message = "");
  void Send(const v1::WorkerMessage& message);
  grpc::Status PushLogs(const std::vector<v1::LogChunk>& chunks);

  int64_t commands_seen() const;
  grpc::Status session_end();  // after the session is over

 private:
  void ReadAll();
  int64_t Beat();
  void KeepBeating(std::stop_token stop);
  void Apply(const v1::Command& command);
  v1::RankRef Ref(const v1::StartRanks& start, int64_t rank) const;

  const std::string name_;
  v1::Node node_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> stream_;
  std::jthread reader_;
  std::jthread heart_;
  grpc::Status end_;

  mutable Mutex mu_;
  CondVar changed_;
  Mutex write_mu_;
  int64_t heartbeat_ MEGA_GUARDED_BY(mu_) = 0;
  int64_t leased_ MEGA_GUARDED_BY(mu_) = 0;
  int64_t last_command_ MEGA_GUARDED_BY(mu_) = 0;
  int64_t seen_ MEGA_GUARDED_BY(mu_) = 0;
  bool has_ended_ MEGA_GUARDED_BY(mu_) = false;
  std::vector<v1::Command> commands_ MEGA_GUARDED_BY(mu_);
  std::vector<v1::RankRef> running_ MEGA_GUARDED_BY(mu_);
  std::vector<v1::RankExited> exited_ MEGA_GUARDED_BY(mu_);
};

}  // namespace mega::service
