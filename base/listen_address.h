// host:port as flags give it. Plain text anywhere but on loopback must be asked for.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace mega {

struct ListenAddress {
  std::string host;  // without brackets
  int port = 0;      // 0: any free one

  // "localhost" or an address that never leaves the machine. A name is what its owner makes of it.
  bool is_loopback() const;
  // Brackets around an IPv6 host.
  std::string ToString() const;
};

// The one way to read HOST:PORT; `flag`, what gave it, is named in the error.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view flag, std::string_view text);
// The same for one to call, whose port is not 0.
absl::StatusOr<ListenAddress> ParseServerAddress(std::string_view flag, std::string_view text);

// Of an address at which there is no TLS. INVALID_ARGUMENT unless loopback or `insecure`; the error
// ends with `remedy`, what the user can do.
absl::Status CheckPlainTextAllowed(std::string_view flag, const ListenAddress& address,
                                   bool insecure, std::string_view remedy);

// Where others reach what listens at `host` and got `port`: a wildcard becomes this machine's name.
std::string AdvertisedAddress(const std::string& host, int port);

std::string HostName();

}  // namespace mega
