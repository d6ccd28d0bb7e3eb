// HTTP for /metrics.
//   server = MetricsServer::Start(listen, registry)      // UNAVAILABLE when the port is taken
// Scrapes come on threads of its own. Its end waits for those under way and for nothing else.
#pragma once

#include <memory>
#include <string>

#include "base/listen_address.h"
#include "base/status.h"
#include "prometheus/collectable.h"

namespace prometheus {
class Exposer;
}

namespace mega {

class MetricsServer {
 public:
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const ListenAddress& listen, std::shared_ptr<prometheus::Collectable> metrics);
  ~MetricsServer();

  const ListenAddress& address() const { return address_; }  // with the real port

 private:
  MetricsServer() = default;

  std::shared_ptr<prometheus::Collectable> metrics_;
  std::unique_ptr<prometheus::Exposer> exposer_;
  ListenAddress address_;
};

}  // namespace mega
