// Calls to a coordinator. Every unary call has a deadline of 10 s and is retried for about a second
// while the coordinator cannot be reached, but for RestartJob and DeleteCheckpoint: these alone are
// not idempotent. Streams live until their end or Cancel; keepalive finds a dead peer.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "cli/client/errors.h"
#include "cli/client/target.h"
#include "mega/v1/cluster.pb.h"
#include "mega/v1/job.pb.h"

namespace mega::cli {

// A server stream. Next and Finish belong to one thread; Cancel may be called from any.
template <typename Message>
class Stream {
 public:
  // Keeps gRPC out of the commands' translation units.
  class Source {
   public:
    virtual ~Source() = default;
    virtual bool Next(Message* message) = 0;
    virtual absl::Status Finish() = 0;
    virtual void Cancel() = 0;
  };
  explicit Stream(std::unique_ptr<Source> source) : source_(std::move(source)) {}

  // False at the end; Finish then says why.
  bool Next(Message* message) { return source_->Next(message); }
  absl::Status Finish() { return source_->Finish(); }
  void Cancel() { source_->Cancel(); }

 private:
  std::unique_ptr<Source> source_;
};

class Client {
 public:
  // Fails where IdentityAt does; calls tell whether anybody answers.
  static absl::StatusOr<Client> Connect(Target target);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  const Target& target() const { return target_; }
  bool is_plain_text() const { return is_plain_text_; }

  absl::StatusOr<v1::Job> SubmitJob(const v1::SubmitJobRequest& request);
  // `handle`: full name, uid, metadata.name, or a unique prefix of either.
  absl::StatusOr<v1::Job> GetJob(const std::string& handle);
  // All pages. `parent` as in ListJobsRequest.
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const std::string& parent);
  absl::StatusOr<v1::Job> CancelJob(const std::string& handle);
  absl::StatusOr<v1::Job> PauseJob(const std::string& handle);
  absl::StatusOr<v1::Job> ResumeJob(const std::string& handle);
  // from_step: 0 is the newest checkpoint.
  absl::StatusOr<v1::Job> RestartJob(const std::string& handle, int64_t from_step,
                                     bool from_beginning);
  // now: does not wait for the next checkpoint.
  absl::StatusOr<v1::Job> ScaleJob(const std::string& handle, int64_t nodes, bool now);
  absl::StatusOr<v1::Job> SaveCheckpoint(const std::string& handle);
  absl::StatusOr<v1::Manifest> PinCheckpoint(const std::string& handle, int64_t step, bool pinned);
  // force: the newest or a pinned one too.
  absl::StatusOr<v1::Job> DeleteCheckpoint(const std::string& handle, int64_t step, bool force);
  absl::StatusOr<v1::PlanJobResponse> PlanJob(const v1::PlanJobRequest& request);
  absl::StatusOr<v1::ListNodesResponse> ListNodes();
  absl::StatusOr<v1::ListQueueResponse> ListQueue(const std::string& parent);  // all pages
  absl::StatusOr<v1::ListNamespacesResponse> ListNamespaces();                 // likewise
  absl::StatusOr<v1::Namespace> UpdateNamespace(const v1::Namespace& limits);
  absl::Status DeleteNamespace(const std::string& name);
  absl::StatusOr<v1::Node> CordonNode(const std::string& name, const std::string& reason);
  absl::StatusOr<v1::Node> UncordonNode(const std::string& name);
  absl::StatusOr<v1::Node> DrainNode(const std::string& name, const std::string& reason,
                                     int64_t grace_seconds);
  absl::StatusOr<v1::GetVersionResponse> GetVersion();
  absl::StatusOr<v1::WhoAmIResponse> WhoAmI();

  Stream<v1::JobEvent> WatchEvents(const v1::WatchEventsRequest& request);
  Stream<v1::LogChunk> StreamLogs(const v1::StreamLogsRequest& request);
  Stream<v1::StepReport> StreamSteps(const v1::StreamStepsRequest& request);

 private:
  struct Stubs;
  Client(Target target, const tls::Identity* identity);
  std::string FullHandle(const std::string& handle) const;

  Target target_;
  bool is_plain_text_;
  std::unique_ptr<Stubs> stubs_;
};

// True in the phases that a job never leaves.
bool IsFinal(v1::JobPhase phase);

}  // namespace mega::cli
