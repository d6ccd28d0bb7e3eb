// host:port to listen on. There is no TLS yet, so anything but loopback must be asked for.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace mega::service {

struct ListenAddress {
  std::string host;  // without brackets
  int port = 0;      // 0: any free one

  bool is_loopback() const;
  // Brackets around an IPv6 host.
  std::string ToString() const;
};

// `flag` is named in the error.
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view flag, std::string_view text);

// FAILED_PRECONDITION unless loopback or `insecure`.
absl::Status CheckPlainTextAllowed(std::string_view flag, const ListenAddress& address,
                                   bool insecure);

}  // namespace mega::service
