#include "base/listen_address.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "absl/strings/numbers.h"

namespace mega {

bool ListenAddress::is_loopback() const {
  if (host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
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
                                   bool insecure, std::string_view remedy) {
  if (insecure || address.is_loopback()) return absl::OkStatus();
  return InvalidArgument(
      "{} is {}, which is beyond loopback, and plain text: anyone on that network could listen or "
      "give orders. {}, use 127.0.0.1, or say --insecure if the network is trusted",
      flag, address.ToString(), remedy);
}

std::string AdvertisedAddress(const std::string& host, int port) {
  const bool is_wildcard = host == "0.0.0.0" || host == "::";
  return ListenAddress{is_wildcard ? HostName() : host, port}.ToString();
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

}  // namespace mega
