// Test support: one TCP connection to an HTTP server, as slow or rude as the test wants.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/unique_fd.h"

namespace mega::testing {

class HttpClient {
 public:
  // To loopback. `receive_bytes`: size of the socket's buffer; 0: as usual.
  explicit HttpClient(int port, int receive_bytes = 0)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    MEGA_CHECK(static_cast<bool>(fd_));
    if (receive_bytes > 0) {
      setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MEGA_CHECK_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }

  // False: the server has closed.
  bool Send(std::string_view text) {
    return send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }

  // The next `bytes`; nothing when they have not come within `patience`.
  std::optional<std::string> Read(size_t bytes, std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    std::string text;
    while (text.size() < bytes) {
      std::string more(bytes - text.size(), '\0');
      if (!IsReadable(deadline)) return std::nullopt;
      const ssize_t got = recv(fd_.get(), more.data(), more.size(), 0);
      if (got <= 0) return std::nullopt;
      text.append(more, 0, static_cast<size_t>(got));
    }
    return text;
  }

  // All until the server closes; nothing when it has not within `patience`.
  std::optional<std::string> ReadToEnd(std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    std::string text;
    char buffer[65536];
    while (true) {
      if (!IsReadable(deadline)) return std::nullopt;
      const ssize_t got = recv(fd_.get(), buffer, sizeof(buffer), 0);
      if (got <= 0) return text;
      text.append(buffer, static_cast<size_t>(got));
    }
  }

 private:
  bool IsReadable(std::chrono::steady_clock::time_point deadline) const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waiting = {fd_.get(), POLLIN, 0};
    return left.count() > 0 && poll(&waiting, 1, static_cast<int>(left.count())) > 0;
  }

  UniqueFd fd_;
};

}  // namespace mega::testing
