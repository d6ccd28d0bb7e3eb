// The kernel gives a new descriptor the lowest number that is free: a connection whose number is
// beyond the bound is one too many, and nobody has to count.
#include "base/grpc_server/grpc_server.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "base/check.h"
#include "base/descriptor_limit.h"
#include "base/listening_socket.h"
#include "base/log.h"
#include "base/thread.h"

namespace mega {
namespace {

constexpr int kHandshakeMs = 10'000;
constexpr int kPauseMs = 100;  // while the machine has no descriptors, or no memory
constexpr int kTurns = 256;    // then the next listener is looked at
constexpr absl::Duration kTellEvery = absl::Minutes(1);

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    grpc::ServerBuilder& builder, const ListenAddress& listen,
    const std::shared_ptr<grpc::ServerCredentials>& credentials, const Bounds& bounds) {
  std::unique_ptr<GrpcServer> server(new GrpcServer);
  server->address_ = listen;
  server->most_connections_ = bounds.connections;
  if (auto listeners = ListenOn(server->address_); listeners.ok()) {
    server->listeners_ = *std::move(listeners);
  } else {
    return Unavailable(
        "cannot listen on {}: {}. The port may be in use or the address not this machine's; choose "
        "another --listen, or port 0 for a free one",
        listen.ToString(), std::string(listeners.status().message()));
  }
  server->wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!server->wake_) return ErrnoStatus(errno, "eventfd");
  builder.SetResourceQuota(grpc::ResourceQuota("rpc").Resize(bounds.unparsed_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, bounds.calls_per_connection);
  // Who connects and says nothing holds a descriptor for this long and no longer.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  using Builder = grpc::ServerBuilder::experimental_type;
  server->acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      Builder::ExternalConnectionType::FROM_FD, credentials);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) return Unavailable("gRPC cannot be started");
  MEGA_ASSIGN_OR_RETURN(server->thread_,
                        StartThread([&self = *server](std::stop_token stop) { self.Serve(stop); }));
  return server;
}

void GrpcServer::Shutdown(std::chrono::system_clock::time_point deadline) {
  if (thread_.joinable()) {
    thread_.request_stop();
    const uint64_t one = 1;
    MEGA_CHECK_EQ(write(wake_.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    thread_.join();
  }
  listeners_.clear();
  if (server_ == nullptr) return;
  server_->Shutdown(deadline);
  server_->Wait();
}

void GrpcServer::Serve(std::stop_token stop) {
  std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
  for (const UniqueFd& listener : listeners_) fds.push_back({listener.get(), POLLIN, 0});
  while (!stop.stop_requested()) {
    if (poll(fds.data(), fds.size(), -1) < 0) {
      if (errno != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
      continue;
    }
    for (size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents != 0) Accept(fds[i].fd, stop);
    }
  }
}

void GrpcServer::Accept(int listener, std::stop_token stop) {
  for (int turn = 0; turn < kTurns && !stop.stop_requested(); ++turn) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      if (IsExhaustion(errno)) {
        TellRefused();
        pollfd wake = {wake_.get(), POLLIN, 0};
        poll(&wake, 1, kPauseMs);
        return;
      }
      continue;
    }
    if (fd >= MostConnections()) {
      close(fd);
      TellRefused();
      continue;
    }
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = listener;
    connection.fd = fd;  // gRPC's from now on
    acceptor_->HandleNewConnection(&connection);
  }
}

int64_t GrpcServer::MostConnections() const {
  return std::min(most_connections_, DescriptorLimit() / 4 * 3);
}

void GrpcServer::TellRefused() {
  const absl::Time now = absl::Now();
  if (now - told_ < kTellEvery) return;
  told_ = now;
  log::Warn(
      "connections are refused: there are too many; see who dials, or raise the limit on open "
      "files (LimitNOFILE of systemd, ulimit -n), three quarters of which they may take",
      {{"address", address_.ToString()},
       {"connections_at_most", MostConnections()},
       {"open_files_at_most", DescriptorLimit()}});
}

}  // namespace mega
