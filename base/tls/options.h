// What a program is told about TLS on its command line.
#pragma once

#include "base/command_line/command_line.h"
#include "base/status.h"
#include "base/tls/identity.h"

namespace mega::tls {

struct Options {
  Files files{};                  // --tls-ca, --tls-cert, --tls-key
  bool insecure = false;          // --insecure: plain text may leave the machine
  bool insecure_metrics = false;  // --insecure-metrics: that of /metrics may, and no other
};

void AddOptions(Command command, Options& options);
// --insecure-metrics, of those that have /metrics.
void AddMetricsOption(Command command, Options& options);

// INVALID_ARGUMENT where both TLS and --insecure are asked for: which of them was meant must not
// depend on whether a file is given.
absl::Status CheckOneAsked(const Options& options);

// What to do where CheckPlainTextAllowed refuses.
inline constexpr char kRemedy[] =
    "Give --tls-ca, --tls-cert and --tls-key (megactl pki init makes them), use 127.0.0.1, or say "
    "--insecure if the network is trusted";

inline constexpr char kMetricsRemedy[] =
    "/metrics has no TLS: let Prometheus scrape it on this machine at 127.0.0.1, or say "
    "--insecure-metrics if the network is trusted";

}  // namespace mega::tls
