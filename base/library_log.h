// The log lines of gRPC and protobuf become ours, at debug. What matters of them comes back as a
// status and is told once, by who knows what it means; the raw line would stand before it and
// frighten people, and any peer could fill the log of a coordinator with such lines.
#pragma once

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <string>

#include "base/log.h"

namespace mega {

// In main, before the first channel or server. Programs only: base itself links no gRPC.
inline void LogLibrariesAtDebug() {
  gpr_set_log_function([](gpr_log_func_args* args) {
    log::Debug("gRPC says", {{"what", args->message},
                             {"file", args->file},
                             {"line", args->line},
                             {"severity", gpr_log_severity_string(args->severity)}});
  });
  google::protobuf::SetLogHandler([](google::protobuf::LogLevel severity, const char* file,
                                     int line, const std::string& what) {
    log::Debug(
        "protobuf says",
        {{"what", what}, {"file", file}, {"line", line}, {"severity", static_cast<int>(severity)}});
  });
}

}  // namespace mega
