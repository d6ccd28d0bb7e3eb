// A gRPC status with its details (trailer grpc-status-details-bin, google.rpc.Status) as an
// absl::Status whose message a person can act on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/printable.h"

namespace grpc {
class Status;
}

namespace mega::cli {

struct FieldViolation {
  std::string field;
  std::string description;
};

// `target` names the coordinator in what is said about the connection. Field violations become
// lines of the message and stay readable through ViolationsOf.
absl::Status FromGrpc(const grpc::Status& status, const std::string& target);

// google.rpc.ErrorInfo.reason: "NODE_GONE". Empty: the coordinator gave none, or never answered.
std::string ReasonOf(const absl::Status& status);

std::vector<FieldViolation> ViolationsOf(const absl::Status& status);

// A copy that carries `violations`, for checks that megactl does itself.
absl::Status WithViolations(const absl::Status& status,
                            const std::vector<FieldViolation>& violations);

}  // namespace mega::cli
