#include "cli/client/errors.h"

#include "absl/strings/cord.h"
#include "cli/client/exit_code.h"
#include "fmt/core.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"

namespace mega::cli {
namespace {

constexpr char kBadRequestUrl[] = "type.googleapis.com/google.rpc.BadRequest";
constexpr char kErrorInfoUrl[] = "type.googleapis.com/google.rpc.ErrorInfo";  // the reason alone
constexpr char kSpecInvalid[] = "SPEC_INVALID";
constexpr size_t kMaxShown = 100;

}  // namespace

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition:
      return kExitConflict;
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return kExitAuth;
    case absl::StatusCode::kUnavailable:
      // With a reason the coordinator itself has spoken: it can be reached.
      return ReasonOf(status).empty() ? kExitUnreachable : kExitFailure;
    case absl::StatusCode::kDeadlineExceeded:
      return kExitTimeout;
    case absl::StatusCode::kInvalidArgument:
      return status.GetPayload(kBadRequestUrl).has_value() ? kExitInvalidSpec : kExitUsage;
    case absl::StatusCode::kCancelled:
      return kExitInterrupted;
    default:
      return kExitFailure;
  }
}

absl::Status WithViolations(const absl::Status& status,
                            const std::vector<FieldViolation>& violations) {
  google::rpc::BadRequest request;
  for (const FieldViolation& violation : violations) {
    auto& out = *request.add_field_violations();
    out.set_field(violation.field);
    out.set_description(violation.description);
  }
  absl::Status copy = status;
  copy.SetPayload(kBadRequestUrl, absl::Cord(request.SerializeAsString()));
  return copy;
}

std::vector<FieldViolation> ViolationsOf(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  const auto payload = status.GetPayload(kBadRequestUrl);
  google::rpc::BadRequest request;
  if (!payload.has_value() || !request.ParseFromString(std::string(*payload))) return violations;
  for (const auto& violation : request.field_violations())
    violations.push_back({violation.field(), violation.description()});
  return violations;
}

std::string ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrorInfoUrl);
  return payload.has_value() ? std::string(*payload) : "";
}

absl::Status FromGrpc(const grpc::Status& status, const std::string& target) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  google::rpc::Status details;
  google::rpc::BadRequest request;
  google::rpc::ErrorInfo info;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& detail : details.details()) {
      detail.UnpackTo(&request);
      detail.UnpackTo(&info);
    }
  }
  std::string message = Printable(status.error_message());
  // With a reason the coordinator itself has spoken: it can be reached.
  if (code == absl::StatusCode::kUnavailable && info.reason().empty()) {
    message = fmt::format(
        "coordinator {} cannot be reached: {}\nis it running there? --coordinator HOST:PORT or "
        "MEGACTL_COORDINATOR names another; `megactl run JOB.yaml` needs none; if it speaks TLS, "
        "so must you: --tls-ca, --tls-cert, --tls-key",
        target, message);
  } else if (code == absl::StatusCode::kDeadlineExceeded) {
    message = fmt::format("coordinator {} did not answer in time: {}", target, message);
  }
  std::vector<FieldViolation> violations;
  for (const auto& violation : request.field_violations()) {
    if (violations.size() == kMaxShown) break;
    violations.push_back({Printable(violation.field()), Printable(violation.description())});
  }
  for (const FieldViolation& violation : violations) {
    // The summary often repeats the first one.
    if (message.find(violation.description) != std::string::npos) continue;
    const bool named = violation.description.starts_with(violation.field);
    message += named ? fmt::format("\n  {}", violation.description)
                     : fmt::format("\n  {}: {}", violation.field, violation.description);
  }
  absl::Status plain(code, message);
  if (!info.reason().empty()) plain.SetPayload(kErrorInfoUrl, absl::Cord(info.reason()));
  // Other requests have fields too; only a spec's are an invalid job file.
  return violations.empty() || info.reason() != kSpecInvalid ? plain
                                                             : WithViolations(plain, violations);
}

}  // namespace mega::cli
