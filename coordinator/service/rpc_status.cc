#include "coordinator/service/rpc_status.h"

#include <algorithm>
#include <cctype>

#include "base/clock.h"
#include "base/utf8.h"
#include "base/version.h"
#include "fmt/core.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace mega::service {
namespace {

constexpr char kDomain[] = "mega";
// gRPC clients refuse metadata above 8 KiB by default; message and details both travel there, and
// the details a third longer for their base64.
constexpr size_t kMessageBytes = 1000;
constexpr size_t kDetailBytes = 4500;

std::string Clip(std::string_view text, size_t bytes) {
  return text.size() <= bytes ? std::string(text) : CutUtf8(text, bytes) + "…";
}

google::rpc::Status Start(absl::StatusCode code, std::string_view reason, std::string_view message,
                          const Metadata& metadata) {
  google::rpc::Status status;
  status.set_code(static_cast<int>(code));
  status.set_message(Clip(message, kMessageBytes));
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain(kDomain);
  for (const auto& [key, value] : metadata) (*info.mutable_metadata())[key] = Clip(value, 500);
  status.add_details()->PackFrom(info);
  return status;
}

grpc::Status Finish(const google::rpc::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), status.message(),
          status.SerializeAsString()};
}

}  // namespace

grpc::Status RpcError(absl::StatusCode code, std::string_view reason, std::string_view message,
                      const Metadata& metadata) {
  return Finish(Start(code, reason, message, metadata));
}

grpc::Status RpcError(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string reason = absl::StatusCodeToString(status.code());
  return RpcError(status.code(), reason, std::string(status.message()));
}

grpc::Status SpecInvalid(const std::vector<spec::Violation>& violations) {
  std::string message = violations.empty() ? "the job spec is invalid" : violations[0].message;
  if (violations.size() > 1) message += fmt::format(" (and {} more)", violations.size() - 1);
  google::rpc::Status status =
      Start(absl::StatusCode::kInvalidArgument, "SPEC_INVALID", message, {});
  google::rpc::BadRequest bad;
  size_t bytes = status.ByteSizeLong();
  for (size_t i = 0; i < violations.size(); ++i) {
    const std::string description = Clip(violations[i].message, 800);
    bytes += description.size() + violations[i].field.size() + 16;
    auto* violation = bad.add_field_violations();
    if (bytes > kDetailBytes) {
      violation->set_description(
          fmt::format("and {} more violations; correct these first", violations.size() - i));
      break;
    }
    violation->set_field(violations[i].field);
    violation->set_description(description);
  }
  status.add_details()->PackFrom(bad);
  return Finish(status);
}

grpc::Status FieldInvalid(std::string_view reason, std::string_view field,
                          std::string_view message) {
  google::rpc::Status status =
      Start(absl::StatusCode::kInvalidArgument, reason, message, {{"field", std::string(field)}});
  google::rpc::BadRequest bad;
  auto* violation = bad.add_field_violations();
  violation->set_field(std::string(field));
  violation->set_description(Clip(message, kMessageBytes));
  status.add_details()->PackFrom(bad);
  return Finish(status);
}

grpc::Status ResourceNotFound(std::string_view type, std::string_view name,
                              std::string_view message) {
  std::string reason(type);
  std::transform(reason.begin(), reason.end(), reason.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  google::rpc::Status status =
      Start(absl::StatusCode::kNotFound, reason + "_NOT_FOUND", message, {});
  google::rpc::ResourceInfo info;
  info.set_resource_type(std::string(type));
  info.set_resource_name(Clip(name, 500));
  status.add_details()->PackFrom(info);
  return Finish(status);
}

grpc::Status NotImplemented(std::string_view method) {
  return RpcError(
      absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED",
      fmt::format("{} is of a later release than this coordinator's, {}", method, kVersion),
      {{"method", std::string(method)}});
}

grpc::Status Overloaded(std::string_view message, absl::Duration retry) {
  google::rpc::Status status =
      Start(absl::StatusCode::kResourceExhausted, "OVERLOADED", message, {});
  google::rpc::RetryInfo info;
  *info.mutable_retry_delay() = ToProto(retry);
  status.add_details()->PackFrom(info);
  return Finish(status);
}

grpc::Status TooManyChecks() {
  return Overloaded(
      "too many calls wait for the coordinator to check a spec, plan a job or look at the queue; "
      "try again in a second",
      absl::Seconds(1));
}

}  // namespace mega::service
