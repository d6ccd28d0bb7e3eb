// Errors as gRPC clients get them: a code, a sentence, and google.rpc details in the trailers
// (grpc-status-details-bin): exactly one ErrorInfo always; BadRequest with every violation;
// ResourceInfo for what was not found; RetryInfo under pressure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/planner/spec/spec.h"
#include "grpcpp/support/status.h"

namespace mega::service {

using Metadata = std::map<std::string, std::string>;

// `reason` is UPPER_SNAKE, stable, at most 63 characters.
grpc::Status RpcError(absl::StatusCode code, std::string_view reason, std::string_view message,
                      const Metadata& metadata = {});

// From a status of a library below; its code gives the reason.
grpc::Status RpcError(const absl::Status& status);

// INVALID_ARGUMENT, SPEC_INVALID. The details hold all violations; only when they would not fit the
// 8 KiB that clients accept as trailers, the last one counts those left out.
grpc::Status SpecInvalid(const std::vector<spec::Violation>& violations);
grpc::Status FieldInvalid(std::string_view reason, std::string_view field,
                          std::string_view message);

// `type` is "job", "node", "attempt" …
grpc::Status ResourceNotFound(std::string_view type, std::string_view name,
                              std::string_view message);

// UNIMPLEMENTED: of a method that is declared and not there yet.
grpc::Status NotImplemented(std::string_view method);

// RESOURCE_EXHAUSTED with the time to wait.
grpc::Status Overloaded(std::string_view message, absl::Duration retry);
// The same, of calls that validate, plan or forecast (Shell::checks).
grpc::Status TooManyChecks();

}  // namespace mega::service
