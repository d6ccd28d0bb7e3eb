#include "worker/daemon/witness_service.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "base/dns_name.h"
#include "base/tls/credentials.h"
#include "fmt/core.h"

namespace mega::daemon {
namespace {

constexpr size_t kMostWaiting = 1024;
// A worker asks once a heartbeat and gives up after two; only its newest is worth anything.
constexpr ptrdiff_t kMostOfOne = 4;
// Names and numbers. The askers are the nodes whose witness this one is; each has one connection.
constexpr int kMostMessageBytes = 64 << 10;
constexpr int64_t kMostConnections = 16'384;
constexpr int kMostCallsPerConnection = 256;
constexpr size_t kMostUnparsedBytes = size_t{256} << 20;

}  // namespace

grpc::Status WitnessService::CheckAsker(const grpc::CallbackServerContext& context,
                                        const std::string& node) const {
  if (!is_tls_) return grpc::Status::OK;
  const std::optional<tls::PeerName> asker = tls::PeerOf(*context.auth_context());
  if (asker == tls::PeerName{tls::PeerName::Kind::kNode, node}) return grpc::Status::OK;
  return {grpc::StatusCode::PERMISSION_DENIED,
          fmt::format("{} asks on behalf of node '{}'", tls::DescribePeer(asker), node)};
}

// One relay under way. It ends when the coordinator answers or the asker gives up.
class WitnessService::Waiting : public grpc::ServerUnaryReactor {
 public:
  Waiting(WitnessService& service, v1::RelayHeartbeatResponse& response)
      : service_(service), response_(response) {}
  void Answer(const v1::RelayedLease* lease) {
    if (lease != nullptr && lease->has_lease()) {
      response_.set_renewed(true);
      *response_.mutable_lease() = lease->lease();
    }
    Finish(grpc::Status::OK);
  }
  void OnCancel() override {
    if (service_.Take(this)) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  WitnessService& service_;
  v1::RelayHeartbeatResponse& response_;
};

WitnessService::Waiting* WitnessService::Take(const Key& key) {
  MutexLock lock(mu_);
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return nullptr;
  Waiting* waiting = found->second;
  waiting_.erase(found);
  return waiting;
}

bool WitnessService::Take(const Waiting* waiting) {
  MutexLock lock(mu_);
  return std::erase_if(waiting_, [&](const auto& entry) { return entry.second == waiting; }) != 0;
}

void WitnessService::Relayed(const v1::RelayedLease& lease) {
  Waiting* waiting = Take(Key{lease.node(), lease.incarnation(), lease.heartbeat_seq()});
  if (waiting != nullptr) waiting->Answer(&lease);
}

void WitnessService::SessionOver() {
  std::map<Key, Waiting*> waiting;
  {
    MutexLock lock(mu_);
    waiting.swap(waiting_);
  }
  for (const auto& [key, one] : waiting) one->Answer(nullptr);
}

WitnessService::Waiting* WitnessService::TakeOldestBeyond(const std::string& node) {
  const auto oldest = waiting_.lower_bound(Key{node, INT64_MIN, INT64_MIN});
  auto last = oldest;
  ptrdiff_t number = 0;
  for (; last != waiting_.end() && std::get<0>(last->first) == node; ++last) ++number;
  if (number <= kMostOfOne) return nullptr;
  Waiting* waiting = oldest->second;
  waiting_.erase(oldest);
  return waiting;
}

grpc::ServerUnaryReactor* WitnessService::QueryWitness(grpc::CallbackServerContext* context,
                                                       const v1::QueryWitnessRequest* request,
                                                       v1::QueryWitnessResponse* response) {
  grpc::Status status = CheckAsker(*context, request->node());
  if (status.ok()) {
    response->set_node(node_);
    response->set_incarnation(incarnation_);
    response->set_no_session(callbacks_.no_session());
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(std::move(status));
  return reactor;
}

grpc::ServerUnaryReactor* WitnessService::RelayHeartbeat(grpc::CallbackServerContext* context,
                                                         const v1::RelayHeartbeatRequest* request,
                                                         v1::RelayHeartbeatResponse* response) {
  const Key key{request->node(), request->incarnation(), request->heartbeat_seq()};
  auto* waiting = new Waiting(*this, *response);  // deletes itself when it is done
  if (!IsHostName(request->node())) {
    waiting->Finish({grpc::StatusCode::INVALID_ARGUMENT,
                     fmt::format("node is not the name of one: {}", kHostNameRule)});
    return waiting;
  }
  if (grpc::Status denied = CheckAsker(*context, request->node()); !denied.ok()) {
    waiting->Finish(std::move(denied));
    return waiting;
  }
  bool is_waiting = false;
  Waiting* outdated = nullptr;
  {
    MutexLock lock(mu_);
    if (waiting_.size() < kMostWaiting) is_waiting = waiting_.emplace(key, waiting).second;
    if (is_waiting) outdated = TakeOldestBeyond(request->node());
  }
  if (outdated != nullptr) outdated->Answer(nullptr);
  if (outdated == waiting) return waiting;
  if (!is_waiting) {  // asked twice, or by very many
    waiting->Answer(nullptr);
    return waiting;
  }
  v1::RelayedHeartbeat heartbeat;
  heartbeat.set_node(request->node());
  heartbeat.set_incarnation(request->incarnation());
  heartbeat.set_heartbeat_seq(request->heartbeat_seq());
  // Whoever takes it out finishes it; it may be gone already, so it is compared and not touched.
  if (!callbacks_.relay(std::move(heartbeat)) && Take(waiting)) waiting->Answer(nullptr);
  return waiting;
}

absl::StatusOr<std::unique_ptr<GrpcServer>> Serve(WitnessService& service,
                                                  const ListenAddress& listen,
                                                  const tls::Identity* identity) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  builder.RegisterService(&service);
  return GrpcServer::Start(builder, listen, tls::ServerCredentials(identity),
                           {.connections = kMostConnections,
                            .calls_per_connection = kMostCallsPerConnection,
                            .unparsed_bytes = kMostUnparsedBytes});
}

}  // namespace mega::daemon
