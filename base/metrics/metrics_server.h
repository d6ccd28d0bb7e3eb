// HTTP for /metrics.
//   server = MetricsServer::Start(listen, registry)      // UNAVAILABLE when the port is taken
// Scrapes come on a thread of its own, one after the other. Its end cuts one that is under way.
#pragma once

#include <memory>

#include "base/listen_address.h"
#include "base/metrics/http_server.h"
#include "base/status.h"
#include "prometheus/collectable.h"

namespace mega {

class MetricsServer {
 public:
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const ListenAddress& listen, std::shared_ptr<prometheus::Collectable> metrics);

  const ListenAddress& address() const { return server_->address(); }  // with the real port

 private:
  MetricsServer() = default;

  std::unique_ptr<HttpServer> server_;
};

}  // namespace mega
