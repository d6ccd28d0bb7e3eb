// Sends step reports to the coordinator over PushSteps. A stream carries them at once; ending it is
// the receipt, so a stream is ended every few seconds, and what a broken one carried is sent again:
// every report arrives at least once, in order.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "base/mutex.h"
#include "mega/v1/telemetry.pb.h"
#include "worker/daemon/channel.h"
#include "worker/daemon/rank_key.h"
#include "worker/daemon/report_buffer.h"

namespace mega::daemon {

class Reports {
 public:
  explicit Reports(Coordinator coordinator, size_t capacity = 100'000);
  ~Reports();

  // Never blocks on the network.
  void Add(const RankKey& key, v1::StepReport report);
  // Asks for a receipt of what is there now.
  void Flush();
  // The coordinator is back: try at once.
  void Wake();

  // Reports of this rank without a receipt.
  int64_t Pending(const RankKey& key) const;
  int64_t dropped() const;

 private:
  void Run(std::stop_token stop);
  // One stream's life. True when its receipt came.
  bool SendOnce(std::stop_token stop, std::shared_ptr<grpc::Channel>& channel);

  const Coordinator coordinator_;

  mutable Mutex mu_;
  CondVar changed_;
  ReportBuffer buffer_ MEGA_GUARDED_BY(mu_);
  bool flush_ MEGA_GUARDED_BY(mu_) = false;
  bool wake_ MEGA_GUARDED_BY(mu_) = false;
  grpc::ClientContext* context_ MEGA_GUARDED_BY(mu_) = nullptr;  // of the stream under way
  std::jthread thread_;
};

}  // namespace mega::daemon
