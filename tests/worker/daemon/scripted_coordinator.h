// Test support: a coordinator on a real socket that does as the test says and remembers what it
// heard.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "mega/v1/worker.grpc.pb.h"

namespace mega::testing {

class ScriptedCoordinator : public v1::WorkerService::Service {
 public:
  ScriptedCoordinator() { Serve(); }
  ~ScriptedCoordinator() override { Stop(); }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  void Stop();   // as if killed
  void Serve();  // on the same port; memory of what was heard stays
  void SetTtl(absl::Duration ttl);
  void SetAnswering(bool answering);  // heartbeats
  // Says so with the leases that answer hellos; command numbers begin again.
  void SetCluster(const std::string& id);
  void RejectWith(const std::string& reason, bool fatal);
  // PushLogs streams are cut after that many chunks, once for each of `cuts`.
  void CutLogs(int after_chunks, int cuts);

  // Gives the command the next seq and sends it when there is a session.
  int64_t Order(v1::Command command);
  // One after another, and nothing between them.
  void OrderTogether(std::vector<v1::Command> commands);
  void SendAgain(const v1::Command& command);
  void StreamLog(const v1::StreamLog& request);  // no seq: not kept

  struct Heard {
    std::vector<v1::Hello> hellos;
    std::vector<v1::WorkerMessage> messages;  // others, without heartbeats
    int heartbeats = 0;
    std::vector<v1::StepReport> steps;
    int step_streams = 0;
    std::map<std::string, std::vector<v1::LogChunk>> logs;  // by stream
    std::map<std::string, int> log_streams_ended;
    int sessions_open = 0;
  };
  // Until `condition` holds. False when 20 s have passed.
  bool Await(const std::function<bool(const Heard&)>& condition);
  Heard heard();

  // Shorthands over what was heard.
  bool AwaitExits(size_t count);
  // That many ranks have said that they are ready.
  bool AwaitReady(size_t count = 1);
  std::vector<v1::RankExited> Exits();

 private:
  using SessionStream = grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>;
  grpc::Status Session(grpc::ServerContext* context, SessionStream* stream) override;
  grpc::Status PushSteps(grpc::ServerContext* context, grpc::ServerReader<v1::StepReport>* reader,
                         v1::PushStepsResponse* response) override;
  grpc::Status PushLogs(grpc::ServerContext* context, grpc::ServerReader<v1::LogChunk>* reader,
                        v1::PushLogsResponse* response) override;
  int64_t OrderNow(v1::Command command) MEGA_REQUIRES(mu_);
  void Lease(SessionStream* stream, int64_t seq, const std::string& cluster) MEGA_REQUIRES(mu_);

  Mutex mu_;
  CondVar changed_;
  Heard heard_ MEGA_GUARDED_BY(mu_);
  SessionStream* session_ MEGA_GUARDED_BY(mu_) = nullptr;
  std::map<int64_t, v1::Command> unacked_ MEGA_GUARDED_BY(mu_);
  int64_t next_seq_ MEGA_GUARDED_BY(mu_) = 1;
  absl::Duration ttl_ MEGA_GUARDED_BY(mu_) = absl::Seconds(10);
  bool answering_ MEGA_GUARDED_BY(mu_) = true;
  std::string cluster_ MEGA_GUARDED_BY(mu_);
  std::string reject_ MEGA_GUARDED_BY(mu_);
  bool reject_fatal_ MEGA_GUARDED_BY(mu_) = false;
  int cut_after_ MEGA_GUARDED_BY(mu_) = 0;
  int cuts_ MEGA_GUARDED_BY(mu_) = 0;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace mega::testing
