#include "worker/daemon/listen_address.h"

#include <unistd.h>

#include "absl/strings/numbers.h"

namespace mega::daemon {

absl::StatusOr<HostPort> ParseHostPort(const std::string& flag, const std::string& value) {
  const size_t colon = value.rfind(':');
  HostPort out;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(value.substr(colon + 1), &out.port) || out.port < 0 || out.port > 65535) {
    return InvalidArgument("{} '{}' is not HOST:PORT; for example 127.0.0.1:7070", flag, value);
  }
  out.host = value.substr(0, colon);
  if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']') {
    out.host = out.host.substr(1, out.host.size() - 2);
  }
  return out;
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

std::string AdvertisedAddress(const std::string& listen, int port) {
  const auto parsed = ParseHostPort("address", listen);
  std::string host = parsed.ok() ? parsed->host : "localhost";
  if (host == "0.0.0.0" || host == "::") host = HostName();
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

}  // namespace mega::daemon
