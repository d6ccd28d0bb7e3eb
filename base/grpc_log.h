// gRPC's own log lines become ours, at debug. What matters of them comes back as a status and is
// told once, by who knows what it means; its raw line would stand before it and frighten people.
#pragma once

#include <grpc/support/log.h>

#include "base/log.h"

namespace mega {

// In main, before the first channel or server. Programs only: base itself links no gRPC.
inline void LogGrpcAtDebug() {
  gpr_set_log_function([](gpr_log_func_args* args) {
    log::Debug("gRPC says", {{"what", args->message},
                             {"file", args->file},
                             {"line", args->line},
                             {"severity", gpr_log_severity_string(args->severity)}});
  });
}

}  // namespace mega
