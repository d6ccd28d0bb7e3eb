// Calls to a coordinator. Every unary call has a deadline of 10 s and is retried for about a second
// while the coordinator cannot be reached; all of them are idempotent. Streams live until their end
// or Cancel; keepalive finds a dead peer.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "cli/client/errors.h"
#include "cli/client/target.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"
#include "mega/v1/cluster.grpc.pb.h"
#include "mega/v1/job.grpc.pb.h"

namespace mega::cli {

// A server stream. Next and Finish belong to one thread; Cancel may be called from any.
template <typename Message>
class Stream {
 public:
  Stream(std::unique_ptr<grpc::ClientContext> context,
         std::unique_ptr<grpc::ClientReader<Message>> reader, std::string target)
      : context_(std::move(context)), reader_(std::move(reader)), target_(std::move(target)) {}

  // False at the end; Finish then says why.
  bool Next(Message* message) { return reader_->Read(message); }
  absl::Status Finish() { return FromGrpc(reader_->Finish(), target_); }
  void Cancel() { context_->TryCancel(); }

 private:
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReader<Message>> reader_;
  std::string target_;
};

class Client {
 public:
  explicit Client(Target target);

  const Target& target() const { return target_; }

  absl::StatusOr<v1::Job> SubmitJob(const v1::SubmitJobRequest& request);
  // `handle`: full name, uid, metadata.name, or a unique prefix of either.
  absl::StatusOr<v1::Job> GetJob(const std::string& handle);
  // All pages. `parent` as in ListJobsRequest.
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const std::string& parent);
  absl::StatusOr<v1::Job> CancelJob(const std::string& handle);
  absl::StatusOr<v1::PlanJobResponse> PlanJob(const v1::PlanJobRequest& request);
  absl::StatusOr<v1::ListNodesResponse> ListNodes();
  absl::StatusOr<v1::GetVersionResponse> GetVersion();

  Stream<v1::JobEvent> WatchEvents(const v1::WatchEventsRequest& request);
  Stream<v1::LogChunk> StreamLogs(const v1::StreamLogsRequest& request);
  Stream<v1::StepReport> StreamSteps(const v1::StreamStepsRequest& request);

 private:
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request);
  std::string FullHandle(const std::string& handle) const;

  Target target_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::ClusterService::Stub> cluster_;
};

// True in the phases that a job never leaves.
bool IsFinal(v1::JobPhase phase);

}  // namespace mega::cli
