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

grpc::Status CheckCaller(const std::optional<tls::PeerName>& caller, tls::PeerName::Kind wanted) {
  if (caller && caller->kind == wanted) return grpc::Status::OK;
  return RpcError(absl::StatusCode::kPermissionDenied, "CALLER_NOT_ALLOWED",
                  fmt::format("the certificate is of {}, and only {} may call this; make one with "
                              "megactl pki issue",
                              tls::DescribePeer(caller), Called(wanted)));
}

std::string WhyNotNode(const std::optional<tls::PeerName>& caller, const std::string& node) {
  if (!caller || caller == tls::PeerName{tls::PeerName::Kind::kNode, node}) return "";
  return fmt::format("the worker says that it is node '{}', and its certificate is of {}", node,
                     tls::DescribePeer(caller));
}

}  // namespace mega::service
