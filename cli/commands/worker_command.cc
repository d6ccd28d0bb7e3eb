#include "cli/commands/worker_command.h"

#include "base/listen_address.h"
#include "fmt/core.h"

namespace mega::cli {

std::string WorkerCommand(const Target& target) {
  const absl::StatusOr<ListenAddress> address = ParseServerAddress("coordinator", target.address);
  const bool is_here = address.ok() && address->is_loopback();
  std::string command =
      fmt::format("mega-worker --coordinator {} --state-dir {} --devices 2", target.address,
                  is_here ? "/tmp/mega/worker" : "/var/lib/mega/worker");
  // Other workers and ranks must reach it.
  if (!is_here) command += " --listen 0.0.0.0:7072";
  if (target.tls.files.any()) {
    command += fmt::format(" --node n1 --tls-ca {} --tls-cert node-n1.crt --tls-key node-n1.key",
                           target.tls.files.authority);
  } else if (!is_here) {
    command += " --insecure";
  }
  return command;
}

}  // namespace mega::cli
