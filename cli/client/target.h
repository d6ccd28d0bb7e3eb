// Which coordinator and namespace: flag, then environment, then ~/.config/megactl/config.yaml:
//   coordinator: host:7070
//   namespace: team
#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace mega::cli {

struct Target {
  std::string address;
  std::string name_space;
  std::string source;  // what said so: "--coordinator", "MEGACTL_COORDINATOR", the file, "default"
};

inline constexpr char kDefaultCoordinator[] = "127.0.0.1:7070";

// `flag_address` and `flag_namespace` are empty when not given; `environment` is getenv or a test's
// table (nullptr: unset).
absl::StatusOr<Target> FindTarget(const std::string& flag_address,
                                  const std::string& flag_namespace,
                                  const std::function<const char*(const char*)>& environment);

}  // namespace mega::cli
