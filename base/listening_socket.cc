#include "base/listening_socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace mega {
namespace {

constexpr int kMostDraws = 16;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Addresses> Resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), "0", &hints, &list);
  if (error != 0) return Unavailable("{}", gai_strerror(error));
  return Addresses(list, freeaddrinfo);
}

// Null, and errno: it cannot.
UniqueFd Bind(const addrinfo& address, bool with_ipv4, int* port) {
  sockaddr_storage at{};
  std::copy_n(reinterpret_cast<const char*>(address.ai_addr), address.ai_addrlen,
              reinterpret_cast<char*>(&at));
  const bool is_v6 = at.ss_family == AF_INET6;
  in_port_t& port_field = is_v6 ? reinterpret_cast<sockaddr_in6&>(at).sin6_port
                                : reinterpret_cast<sockaddr_in&>(at).sin_port;
  port_field = htons(static_cast<uint16_t>(*port));
  UniqueFd fd(socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  const int only_v6 = with_ipv4 ? 0 : 1;
  socklen_t size = sizeof(at);
  const bool is_bound =
      fd && setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
      (!is_v6 || setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6)) == 0) &&
      // Of those that are accepted, too: a heartbeat waits for no other packet.
      setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0 &&
      bind(fd.get(), reinterpret_cast<sockaddr*>(&at), address.ai_addrlen) == 0 &&
      listen(fd.get(), SOMAXCONN) == 0 &&
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0;
  if (!is_bound) return UniqueFd();
  *port = ntohs(port_field);
  return fd;
}

// Files of hosts may say the same twice.
bool IsRepeated(const addrinfo* list, const addrinfo& address) {
  for (const addrinfo* one = list; one != &address; one = one->ai_next) {
    if (one->ai_addrlen == address.ai_addrlen &&
        std::memcmp(one->ai_addr, address.ai_addr, address.ai_addrlen) == 0) {
      return true;
    }
  }
  return false;
}

bool IsMissingAddress(int error) { return error == EADDRNOTAVAIL || error == EAFNOSUPPORT; }

struct Bound {
  std::vector<UniqueFd> sockets;  // empty: see error
  int port = 0;
  int error = EADDRNOTAVAIL;
};
Bound BindAll(const addrinfo* list, bool with_ipv4, int port) {
  Bound bound{.port = port};
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    if (IsRepeated(list, *one)) continue;
    if (UniqueFd fd = Bind(*one, with_ipv4, &bound.port)) {
      bound.sockets.push_back(std::move(fd));
      continue;
    }
    bound.error = errno;
    if (IsMissingAddress(bound.error)) continue;
    bound.sockets.clear();
    break;
  }
  return bound;
}

// The port that the first address is given may be taken at the second: then another is drawn.
Bound BindToFreePort(const addrinfo* list, bool with_ipv4) {
  for (int draw = 1;; ++draw) {
    Bound bound = BindAll(list, with_ipv4, 0);
    if (!bound.sockets.empty() || bound.error != EADDRINUSE || draw == kMostDraws) return bound;
  }
}

}  // namespace

absl::StatusOr<std::vector<UniqueFd>> ListenOn(ListenAddress& at) {
  const bool is_wildcard = at.host == "0.0.0.0" || at.host == "::";
  int error = 0;
  for (const char* host : {is_wildcard ? "::" : at.host.c_str(), "0.0.0.0"}) {
    MEGA_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(host));
    Bound bound = at.port == 0 ? BindToFreePort(addresses.get(), is_wildcard)
                               : BindAll(addresses.get(), is_wildcard, at.port);
    if (!bound.sockets.empty()) {
      at.port = bound.port;
      return std::move(bound.sockets);
    }
    error = bound.error;
    if (!is_wildcard || !IsMissingAddress(error)) break;
  }
  return ErrnoStatus(error, "listen");
}

bool IsExhaustion(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace mega
