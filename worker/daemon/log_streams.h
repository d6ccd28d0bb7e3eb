// Answers StreamLog: sends a rank's log in chunks over a PushLogs stream per request. A stream that
// breaks is over; its reader asks again from the offset it has.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <thread>

#include <grpcpp/client_context.h>

#include "base/mutex.h"
#include "base/status.h"
#include "mega/v1/worker.pb.h"
#include "worker/daemon/channel.h"
#include "worker/daemon/log_refusals.h"
#include "worker/daemon/rank_log.h"

namespace mega::daemon {

class LogStreams {
 public:
  explicit LogStreams(const Coordinator& coordinator)
      : coordinator_(coordinator), refusals_(coordinator) {}
  ~LogStreams();

  // Starts the stream, or ends the one of that id when `cancel` is set. NOT_FOUND: this node has no
  // log of that rank, and the stream ends at once. Another error is told to the reader, and so is
  // that there are too many streams, or that the machine has no thread for one more.
  void Handle(const v1::StreamLog& request, absl::StatusOr<std::shared_ptr<RankLog>> log);

 private:
  struct Stream {
    std::string id;
    grpc::ClientContext context;  // before the thread that uses it
    std::jthread thread;
  };
  static constexpr size_t kMaxStreams = 128;

  void Run(std::stop_token stop, const v1::StreamLog& request,
           const absl::StatusOr<std::shared_ptr<RankLog>>& log, grpc::ClientContext& context);
  void JoinEnded() MEGA_REQUIRES(mu_);

  const Coordinator coordinator_;
  LogRefusals refusals_;

  Mutex mu_;
  std::list<Stream> streams_ MEGA_GUARDED_BY(mu_);
  std::list<std::string> ended_ MEGA_GUARDED_BY(mu_);
};

}  // namespace mega::daemon
