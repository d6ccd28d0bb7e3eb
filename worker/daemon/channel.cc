#include "worker/daemon/channel.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "base/message_size.h"
#include "base/tls/credentials.h"

namespace mega::daemon {
namespace {

constexpr int kMostPeerBytes = 64 << 10;

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const Coordinator& coordinator) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMostMessageBytes);
  arguments.SetMaxSendMessageSize(kMostMessageBytes);
  // Pings only reap dead sockets; liveness is the heartbeat.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A shared subchannel would share its connection and its back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // How long one attempt to connect may take; the time between attempts is ours.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);
  return grpc::CreateCustomChannel(
      coordinator.address,
      tls::ChannelCredentials(coordinator.identity.get(), {tls::PeerName::Kind::kCoordinator, ""}),
      arguments);
}

std::shared_ptr<grpc::Channel> MakePeerChannel(const std::string& address, const std::string& node,
                                               const tls::Identity* identity) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMostPeerBytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  if (identity != nullptr) arguments.SetSslTargetNameOverride(tls::NodeServerName(node));
  return grpc::CreateCustomChannel(
      address, tls::ChannelCredentials(identity, {tls::PeerName::Kind::kNode, node}), arguments);
}

absl::Duration Backoff::Next() {
  const absl::Duration span = span_;
  span_ = std::min(2 * span_, kLongest);
  return span * std::uniform_real_distribution<double>(0.5, 1.0)(random_);
}

}  // namespace mega::daemon
