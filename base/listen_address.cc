#include "base/listen_address.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/printable.h"

namespace mega {
namespace {

// Digits alone: SimpleAtoi would take blanks and signs.
std::optional<int> ParsePort(std::string_view text) {
  int port = 0;
  const bool is_digits = !text.empty() && text.size() <= 5 &&
                         text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_digits || !absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &port) ||
      port > 65535) {
    return std::nullopt;
  }
  return port;
}

// A name or an IPv4 address by its letters (names of containers have underscores), an IPv6 one by
// all of it but the zone.
bool IsHost(std::string_view text, bool in_brackets) {
  if (in_brackets) {
    const std::string_view zone = text.substr(std::min(text.find('%'), text.size()));
    in6_addr v6{};
    return inet_pton(AF_INET6, std::string(text.substr(0, text.size() - zone.size())).c_str(),
                     &v6) == 1 &&
           (zone.empty() || (zone.size() > 1 && IsHost(zone.substr(1), false)));
  }
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
  });
}

std::optional<ListenAddress> Parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const bool in_brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (in_brackets) host = host.substr(1, host.size() - 2);
  const std::optional<int> port = ParsePort(text.substr(colon + 1));
  if (!port.has_value() || !IsHost(host, in_brackets)) return std::nullopt;
  return ListenAddress{std::string(host), *port};
}

}  // namespace

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
  std::optional<ListenAddress> address = Parse(text);
  if (address.has_value()) return *std::move(address);
  return InvalidArgument(
      "{} is '{}'; write HOST:PORT with a port of at most 65535, such as 127.0.0.1:7070 or [::1]:0",
      flag, PrintableLine(text));
}

absl::StatusOr<ListenAddress> ParseServerAddress(std::string_view flag, std::string_view text) {
  std::optional<ListenAddress> address = Parse(text);
  if (address.has_value() && address->port != 0) return *std::move(address);
  return InvalidArgument(
      "{} is '{}'; write HOST:PORT with a port from 1 to 65535, such as 127.0.0.1:7070", flag,
      PrintableLine(text));
}

absl::Status CheckPlainTextAllowed(std::string_view flag, const ListenAddress& address,
                                   bool insecure, std::string_view remedy) {
  if (insecure || address.is_loopback()) return absl::OkStatus();
  return InvalidArgument(
      "{} is {}, which is beyond loopback, and plain text: anyone on that network could listen or "
      "give orders. {}",
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
