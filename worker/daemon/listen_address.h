// host:port as flags give it.
#pragma once

#include <string>

#include "base/status.h"

namespace mega::daemon {

struct HostPort {
  std::string host;  // without the brackets of IPv6
  int port = 0;
};
absl::StatusOr<HostPort> ParseHostPort(const std::string& flag, const std::string& value);

bool IsLoopback(const std::string& host);

// Where others reach what listens on `listen` and got `port`: a wildcard becomes this machine's
// name.
std::string AdvertisedAddress(const std::string& listen, int port);

std::string HostName();

}  // namespace mega::daemon
