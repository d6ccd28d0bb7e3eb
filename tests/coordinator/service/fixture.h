// A coordinator in this process, on a free port and a folder of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/service/coordinator.h"
#include "google/rpc/error_details.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "mega/v1/cluster.grpc.pb.h"
#include "mega/v1/job.grpc.pb.h"
#include "tests/support/temp_dir.h"

namespace mega::service {

// Every wait of these tests ends here.
inline constexpr absl::Duration kPatience = absl::Seconds(30);

using mega::testing::TempDir;

class ServiceTest : public ::testing::Test {
 public:
  // A job that passes every check: `ranks` data-parallel ranks, `steps` steps.
  static v1::SubmitJobRequest Request(const std::string& name, int ranks = 1, int steps = 5);

 protected:
  ServiceTest();

  void StartCoordinator(state::StateStore* store = nullptr);  // null: of its own, in the folder
  void StopCoordinator() { coordinator_.reset(); }
  const std::string& address() const { return coordinator_->address(); }

  std::unique_ptr<grpc::ClientContext> Context() const;

  grpc::Status Submit(const v1::SubmitJobRequest& request, v1::Job* job);
  v1::Job MustSubmit(const v1::SubmitJobRequest& request);
  v1::Job GetJob(const std::string& name);
  grpc::Status Cancel(const std::string& name, v1::Job* job);
  // The job once it is in `phase`; fails the test when it never is.
  // A lease is granted at once; the node is shown when it is durable.
  v1::Node AwaitNode(const std::string& name);
  v1::Job AwaitPhase(const std::string& name, v1::JobPhase phase);
  std::vector<v1::JobEvent> Events(const std::string& name, int64_t from_revision, bool follow);
  std::vector<v1::StepReport> Steps(const std::string& name, int64_t from_step, bool follow);

  TempDir dir_;
  CoordinatorOptions options_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::ClusterService::Stub> cluster_;
};

// The details of an error; the message of that type must be there exactly once.
google::rpc::ErrorInfo ErrorInfoOf(const grpc::Status& status);
google::rpc::BadRequest BadRequestOf(const grpc::Status& status);
google::rpc::RetryInfo RetryInfoOf(const grpc::Status& status);

}  // namespace mega::service
