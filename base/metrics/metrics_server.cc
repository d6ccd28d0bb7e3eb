#include "base/metrics/metrics_server.h"

#include "prometheus/text_serializer.h"

namespace mega {

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const ListenAddress& listen, std::shared_ptr<prometheus::Collectable> metrics) {
  std::unique_ptr<MetricsServer> server(new MetricsServer);
  auto http = HttpServer::Start(
      listen,
      [metrics = std::move(metrics)](std::string_view path) -> HttpServer::Response {
        if (path != "/metrics") return {.code = 404, .body = "metrics are at /metrics\n"};
        return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
                .body = prometheus::TextSerializer().Serialize(metrics->Collect())};
      },
      HttpServer::Limits());
  if (!http.ok()) {
    return Unavailable(
        "cannot serve metrics at {} ({}): the port may be in use or the address not this "
        "machine's; choose another --metrics-listen, or port 0 for a free one",
        listen.ToString(), std::string(http.status().message()));
  }
  server->server_ = *std::move(http);
  return server;
}

}  // namespace mega
