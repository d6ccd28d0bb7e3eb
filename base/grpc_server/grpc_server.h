// A gRPC server that takes no more of its process than it may, whoever dials and whatever they
// send:
//   server = GrpcServer::Start(builder, listen, credentials, bounds)
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/listen_address.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace mega {

class GrpcServer {
 public:
  struct Bounds {
    // Also three quarters of the process's descriptors at most, so that the rest finds some. Those
    // beyond are closed at once, and the log says so once a minute.
    int64_t connections;
    int calls_per_connection;  // further ones wait their turn
    // What peers have sent and nobody has looked at yet. Beyond it gRPC reads from them more
    // slowly, and at the worst ends their connections.
    size_t unparsed_bytes;
  };
  // `builder` has services and options, and no port. UNAVAILABLE, with the reason, when it cannot
  // listen there.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      grpc::ServerBuilder& builder, const ListenAddress& listen,
      const std::shared_ptr<grpc::ServerCredentials>& credentials, const Bounds& bounds);
  ~GrpcServer() { Shutdown(std::chrono::system_clock::now()); }

  const ListenAddress& address() const { return address_; }  // with the real port
  grpc::Server& server() { return *server_; }

  // Accepts no more, cuts the calls that are under way at `deadline`, and waits for their end.
  void Shutdown(std::chrono::system_clock::time_point deadline);

 private:
  GrpcServer() = default;
  void Serve(std::stop_token stop);
  void Accept(int listener, std::stop_token stop);
  int64_t MostConnections() const;
  void TellRefused();

  ListenAddress address_;
  int64_t most_connections_ = 0;
  std::vector<UniqueFd> listeners_;
  UniqueFd wake_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  absl::Time told_ = absl::InfinitePast();  // the thread's
  std::jthread thread_;
};

}  // namespace mega
