// Which coordinator and namespace: flag, then environment, then ~/.config/megactl/config.yaml:
//   coordinator: host:7070
//   namespace: team
//   tls_ca: FILE
//   tls_cert: FILE
//   tls_key: FILE
//   insecure: true
// Files are looked for beside the configuration. What is said of TLS comes from one place: flags,
// environment (MEGACTL_TLS_CA, MEGACTL_TLS_CERT, MEGACTL_TLS_KEY, MEGACTL_INSECURE) or file; but
// MEGACTL_INSECURE=0 alone takes back no more than the file's insecure.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/tls/options.h"

namespace mega::cli {

struct Target {
  std::string address;
  std::string name_space;
  std::string source;  // what said so: "--coordinator", "MEGACTL_COORDINATOR", the file, "default"
  tls::Options tls{};  // as it was said: IdentityAt looks at it
};

inline constexpr char kDefaultCoordinator[] = "127.0.0.1:7070";

// What a flag did not give is empty; `environment` is getenv or a test's table (nullptr: unset).
// Where, and no more: a command may need that and never go there.
absl::StatusOr<Target> FindTarget(const std::string& flag_address,
                                  const std::string& flag_namespace, const tls::Options& flag_tls,
                                  const std::function<const char*(const char*)>& environment);

// Who to be there; null: plain text, which must be asked for where it would leave the machine, as
// of servers.
absl::StatusOr<std::shared_ptr<const tls::Identity>> IdentityAt(const Target& target);

}  // namespace mega::cli
