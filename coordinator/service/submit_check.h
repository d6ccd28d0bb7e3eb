// Every check a spec must pass before the core hears of it, so that what can never run is refused
// at once, with all that is wrong with it.
#pragma once

#include <string>

#include "grpcpp/support/status.h"
#include "mega/v1/job.pb.h"

namespace mega::service {

struct CheckedSpec {
  v1::JobMetadata metadata;  // namespace filled in
  v1::JobSpec resolved;      // defaults filled in
};

// An empty one means "default".
std::string NamespaceOf(const v1::JobMetadata& metadata);

// Cheap, and first: specs wait in a queue for the rest.
grpc::Status CheckSpecSize(const v1::JobSpec& spec);

// All that is wrong with it, in one answer. Of a job that is to run, not only to be planned, also
// that what several nodes write can be read by each of them: whether the folder is one and the same
// everywhere its ranks find out at their start.
enum class Purpose { kPlan, kRun };
grpc::Status CheckSpec(const v1::JobMetadata& metadata, const v1::JobSpec& spec, Purpose purpose,
                       CheckedSpec* checked);

}  // namespace mega::service
