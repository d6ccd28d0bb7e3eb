// Serves TrainerService to this node's engines over a Unix socket in a private folder.
// An engine is let in only as the process that was started for its rank, and gets its orders in the
// same breath. Everything said to engines goes through here; nothing here blocks.
#pragma once

#include <grpcpp/server.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "mega/v1/trainer.grpc.pb.h"
#include "worker/daemon/rank_key.h"

namespace mega::daemon {

class Attachment;

class TrainerService : public v1::TrainerService::CallbackService {
 public:
  struct Expected {
    int64_t pid = 0;
    v1::StartTraining start;  // its lease end is filled in when it is sent
  };
  // Called from gRPC's threads; they return at once.
  struct Callbacks {
    std::function<void(const RankKey&)> attached;
    std::function<void(const RankKey&, v1::EngineMessage)> message;
    std::function<void(const RankKey&)> detached;
    // The engine may not run: mixed numeric libraries.
    std::function<void(const RankKey&, absl::Status)> refused;
  };

  // Serves on <folder>/s, where `folder` is new, short and private.
  static absl::StatusOr<std::unique_ptr<TrainerService>> Start(Callbacks callbacks);
  ~TrainerService() override;  // ends all streams; removes the folder

  const std::string& socket() const { return socket_; }
  const std::string& folder() const { return folder_; }

  // Before the process runs.
  void Expect(const RankKey& key, Expected expected);
  // The rank is over; its stream, if any, ends.
  void Forget(const RankKey& key);

  void PushLeaseEnd(int64_t boottime_ns);  // to all, and to those who attach later
  // To every attached rank of (job, attempt, epoch); `message` to one rank only.
  void SendToAttempt(const std::string& job_uid, int64_t epoch, const v1::TrainerMessage& message);
  void Send(const RankKey& key, const v1::TrainerMessage& message);

  grpc::ServerBidiReactor<v1::EngineMessage, v1::TrainerMessage>* Attach(
      grpc::CallbackServerContext* context) override;

 private:
  friend class Attachment;
  explicit TrainerService(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}

  // The orders for an engine that says it is `attached`, or why it must go.
  absl::StatusOr<v1::StartTraining> Admit(const v1::Attached& attached,
                                          std::shared_ptr<Attachment> attachment);
  void Detach(const RankKey& key, const Attachment* attachment);
  // Copies, so that nothing is said to gRPC under mu_.
  std::vector<std::shared_ptr<Attachment>> AttachedWhere(
      const std::function<bool(const RankKey&)>& wanted);

  const Callbacks callbacks_;
  std::string folder_;
  std::string socket_;

  Mutex mu_;
  std::map<RankKey, Expected> expected_ MEGA_GUARDED_BY(mu_);
  std::map<RankKey, std::shared_ptr<Attachment>> attachments_ MEGA_GUARDED_BY(mu_);
  int64_t lease_end_ns_ MEGA_GUARDED_BY(mu_) = 0;

  std::unique_ptr<grpc::Server> server_;
};

// Removes a socket folder that an earlier incarnation left, if it looks like one of ours.
void RemoveSocketFolder(const std::string& folder);

}  // namespace mega::daemon
