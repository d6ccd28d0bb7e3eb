// Tells readers of logs that this node has too many of them already: over one PushLogs stream for
// all, so that a refusal costs no thread.
#pragma once

#include <grpcpp/client_context.h>

#include <deque>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "mega/v1/worker.pb.h"
#include "worker/daemon/channel.h"

namespace mega::daemon {

class LogRefusals {
 public:
  explicit LogRefusals(Coordinator coordinator);
  ~LogRefusals();

  // Beyond a few thousand that wait, the oldest is given up: its reader has gone by then.
  void Tell(const v1::StreamLog& request, std::string why);

 private:
  void Run(std::stop_token stop);
  void Send(const std::deque<v1::LogChunk>& chunks);

  const Coordinator coordinator_;

  Mutex mu_;
  CondVar changed_;
  std::deque<v1::LogChunk> waiting_ MEGA_GUARDED_BY(mu_);
  grpc::ClientContext* sending_ MEGA_GUARDED_BY(mu_) = nullptr;
  bool leaving_ MEGA_GUARDED_BY(mu_) = false;

  std::jthread thread_;
};

}  // namespace mega::daemon
