// Which job a client means: its full name, its uid or name, or an unambiguous prefix of either.
// Finished jobs may share a name; then the newest is meant.
#pragma once

#include <memory>
#include <string_view>

#include "coordinator/service/access.h"
#include "coordinator/service/read_model.h"
#include "grpcpp/support/status.h"

namespace mega::service {

// NOT_FOUND, or INVALID_ARGUMENT with the candidates: among the jobs that the caller may look at,
// as if there were no others. PERMISSION_DENIED where the call needs another role in the job's
// namespace.
grpc::Status FindJob(const ReadModel& reads, const Caller& caller, std::string_view name,
                     std::shared_ptr<const v1::Job>* job);

// The job was there a moment ago and is forgotten now.
grpc::Status JobGone(const core::JobUid& uid);

}  // namespace mega::service
