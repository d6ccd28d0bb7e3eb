// HTTP for /metrics.
#pragma once

#include <memory>
#include <string>

#include "base/listen_address.h"
#include "base/status.h"
#include "prometheus/collectable.h"

namespace prometheus {
class Exposer;
}

namespace mega::service {

class MetricsServer {
 public:
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const ListenAddress& listen, std::shared_ptr<prometheus::Collectable> metrics);
  ~MetricsServer();

  // host:port with the real port.
  std::string address() const { return address_.ToString(); }

 private:
  MetricsServer() = default;

  std::shared_ptr<prometheus::Collectable> metrics_;
  std::unique_ptr<prometheus::Exposer> exposer_;
  ListenAddress address_;
};

}  // namespace mega::service
