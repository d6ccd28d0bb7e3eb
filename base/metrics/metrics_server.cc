#include "base/metrics/metrics_server.h"

#include <netdb.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "base/unique_fd.h"
#include "prometheus/exposer.h"

namespace mega {
namespace {

void Connect(const ListenAddress& to) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found) != 0) return;
  const UniqueFd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd) (void)connect(fd.get(), found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const ListenAddress& listen, std::shared_ptr<prometheus::Collectable> metrics) {
  std::unique_ptr<MetricsServer> server(new MetricsServer);
  server->metrics_ = std::move(metrics);
  try {
    server->exposer_ = std::make_unique<prometheus::Exposer>(
        std::vector<std::string>{"listening_ports", listen.ToString(), "num_threads", "2"});
  } catch (const std::exception& e) {
    return Unavailable(
        "cannot serve metrics at {} ({}): the port may be in use or the address not this "
        "machine's; choose another --metrics-listen, or port 0 for a free one",
        listen.ToString(), e.what());
  }
  server->exposer_->RegisterCollectable(server->metrics_);
  server->address_ = {listen.host, server->exposer_->GetListeningPorts().at(0)};
  return server;
}

MetricsServer::~MetricsServer() {
  // civetweb looks whether it must stop every two seconds, and when a connection comes: so one
  // comes.
  std::jthread caller([address = address_](std::stop_token stop) {
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      Connect(address);
    }
  });
  exposer_.reset();
}

}  // namespace mega
