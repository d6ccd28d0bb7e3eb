#include "coordinator/service/listen_address.h"

#include "absl/strings/numbers.h"

namespace mega::service {

bool ListenAddress::is_loopback() const {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string ListenAddress::ToString() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view flag, std::string_view text) {
  ListenAddress address;
  const size_t colon = text.rfind(':');
  const std::string_view port =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    host = {};  // an IPv6 address without brackets
  }
  if (host.empty() ||
      !absl::SimpleAtoi(absl::string_view(port.data(), port.size()), &address.port) ||
      address.port < 0 || address.port > 65535) {
    return InvalidArgument("{} is '{}'; write HOST:PORT, such as 127.0.0.1:7070 or [::1]:0", flag,
                           text);
  }
  address.host = host;
  return address;
}

absl::Status CheckPlainTextAllowed(std::string_view flag, const ListenAddress& address,
                                   bool insecure) {
  if (insecure || address.is_loopback()) return absl::OkStatus();
  return FailedPrecondition(
      "{} is {}, which others on the network can reach, and this release has no TLS; listen on "
      "127.0.0.1, or say --insecure if the network is trusted",
      flag, address.ToString());
}

}  // namespace mega::service
