// Every check a spec must pass before the core hears of it, so that what can never run is refused
// at once, with all that is wrong with it.
#pragma once

#include "grpcpp/support/status.h"
#include "mega/v1/job.pb.h"

namespace mega::service {

struct CheckedSpec {
  v1::JobMetadata metadata;  // namespace filled in
  v1::JobSpec resolved;      // defaults filled in
};

// Cheap, and first: specs wait in a queue for the rest.
grpc::Status CheckSpecSize(const v1::JobSpec& spec);

grpc::Status CheckSpec(const v1::JobMetadata& metadata, const v1::JobSpec& spec,
                       CheckedSpec* checked);

// Of a job that is to run, not only to be planned: what several nodes write must lie where each of
// them can read it. Whether the folder is one and the same everywhere its ranks find out at their
// start.
grpc::Status CheckSharedStorage(const v1::JobSpec& resolved);

}  // namespace mega::service
