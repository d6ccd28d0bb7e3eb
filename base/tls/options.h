// --tls-ca, --tls-cert and --tls-key of a program.
#pragma once

#include "base/command_line/command_line.h"
#include "base/tls/identity.h"

namespace mega::tls {

void AddOptions(Command command, Files& files);

// What else to do where CheckPlainTextAllowed refuses.
inline constexpr char kRemedy[] =
    "Give --tls-ca, --tls-cert and --tls-key (megactl pki init makes them)";

inline constexpr char kMetricsRemedy[] =
    "/metrics has no TLS: let Prometheus scrape it on this machine";

}  // namespace mega::tls
