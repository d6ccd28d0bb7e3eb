#include "coordinator/service/access.h"

#include "base/tls/credentials.h"
#include "coordinator/service/rpc_status.h"
#include "fmt/core.h"

namespace mega::service {
namespace {

const char* Called(tls::PeerName::Kind kind) {
  return kind == tls::PeerName::Kind::kUser ? "users" : "workers";
}

}  // namespace

std::optional<tls::PeerName> CallerOf(const grpc::CallbackServerContext& context) {
  return tls::PeerOf(*context.auth_context());
}

grpc::Status CheckCaller(const grpc::CallbackServerContext& context, tls::PeerName::Kind wanted) {
  if (!tls::IsAuthenticated(*context.auth_context())) return grpc::Status::OK;
  const std::optional<tls::PeerName> caller = CallerOf(context);
  if (caller && caller->kind == wanted) return grpc::Status::OK;
  return RpcError(absl::StatusCode::kPermissionDenied, "CALLER_NOT_ALLOWED",
                  fmt::format("the certificate is of {}, and only {} may call this; make one with "
                              "megactl pki issue",
                              tls::DescribePeer(*context.auth_context()), Called(wanted)));
}

std::string WhyNotNode(const grpc::CallbackServerContext& context, const std::string& node) {
  if (tls::MaySpeakFor(*context.auth_context(), node)) return "";
  return fmt::format("the worker says that it is node '{}', and its certificate is of {}", node,
                     tls::DescribePeer(*context.auth_context()));
}

}  // namespace mega::service
