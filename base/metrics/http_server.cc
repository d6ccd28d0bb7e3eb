#include "base/metrics/http_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "base/listening_socket.h"
#include "base/thread.h"

namespace mega {
namespace {

using std::chrono::milliseconds;

// A peer that was answered gets this long to close; its last bytes must not reset the connection
// before it has read the answer.
constexpr milliseconds kDrain{1'000};
constexpr milliseconds kAcceptPause{100};

const char* Words(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Error";
  }
}

std::string ToText(const HttpServer::Response& response, bool with_body) {
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
      response.code, Words(response.code), response.content_type, response.body.size());
  if (with_body) text += response.body;
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const ListenAddress& listen,
                                                              Handler handler, Limits limits) {
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(handler), limits));
  server->address_ = listen;
  MEGA_ASSIGN_OR_RETURN(server->listeners_, ListenOn(server->address_));
  server->wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!server->wake_) return ErrnoStatus(errno, "eventfd");
  MEGA_ASSIGN_OR_RETURN(server->thread_,
                        StartThread([&self = *server](std::stop_token stop) { self.Serve(stop); }));
  return server;
}

HttpServer::~HttpServer() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  const uint64_t one = 1;
  MEGA_CHECK_EQ(write(wake_.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  thread_.join();
}

void HttpServer::Serve(std::stop_token stop) {
  std::vector<pollfd> fds;
  while (!stop.stop_requested()) {
    Clock::time_point now = Clock::now();
    Clock::time_point wake = now + std::chrono::hours(1);
    const bool accepts = now >= accept_again_;
    if (!accepts) wake = accept_again_;
    fds = {{wake_.get(), POLLIN, 0}};
    for (const UniqueFd& listener : listeners_)
      fds.push_back({accepts ? listener.get() : -1, POLLIN, 0});
    for (const Connection& connection : connections_) {
      wake = std::min(wake, connection.deadline);
      const short events = connection.phase == Phase::kResponse ? POLLOUT : POLLIN;
      fds.push_back({connection.fd.get(), events, 0});
    }
    const auto wait = std::chrono::ceil<milliseconds>(wake - now).count();
    if (poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(0, wait))) < 0 &&
        errno != EINTR) {
      MEGA_CHECK_EQ(errno, ENOMEM);  // of the kernel; it passes
      std::this_thread::sleep_for(kAcceptPause);
      continue;
    }
    now = Clock::now();
    size_t i = 1 + listeners_.size();
    for (auto it = connections_.begin(); it != connections_.end(); ++i) {
      const bool goes_on = now < it->deadline && (fds[i].revents == 0 || Advance(*it, now));
      it = goes_on ? std::next(it) : connections_.erase(it);
    }
    for (size_t one = 0; one < listeners_.size(); ++one)
      if (fds[1 + one].revents != 0) Accept(listeners_[one].get(), now);
  }
}

void HttpServer::Accept(int listener, Clock::time_point now) {
  // However many come, those that are in have their turn.
  for (size_t turn = 0; turn < 2 * limits_.connections; ++turn) {
    UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      if (IsExhaustion(errno)) {
        if (!connections_.empty()) {
          MakeRoom();
          continue;
        }
        accept_again_ = now + kAcceptPause;
        return;
      }
      continue;
    }
    if (connections_.size() >= limits_.connections) MakeRoom();
    connections_.push_back({.fd = std::move(fd), .deadline = now + limits_.request});
    // At once: who asks as soon as it is connected is not crowded out by those behind it.
    if (!Advance(connections_.back(), now)) connections_.pop_back();
  }
}

void HttpServer::MakeRoom() {
  for (const Phase phase : {Phase::kDrain, Phase::kRequest, Phase::kResponse}) {
    const auto oldest =
        std::find_if(connections_.begin(), connections_.end(),
                     [phase](const Connection& connection) { return connection.phase == phase; });
    if (oldest == connections_.end()) continue;
    connections_.erase(oldest);
    return;
  }
}

bool HttpServer::Advance(Connection& connection, Clock::time_point now) {
  if (connection.phase != Phase::kResponse && !Read(connection, now)) return false;
  return connection.phase != Phase::kResponse || Write(connection, now);
}

bool HttpServer::Read(Connection& connection, Clock::time_point now) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t got = recv(connection.fd.get(), buffer.data(), buffer.size(), 0);
    if (got == 0) return false;
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    // One that never stops sending gets no more of this turn than its request may have.
    if (connection.phase == Phase::kDrain) return true;
    std::string& request = connection.request;
    request.append(buffer.data(), static_cast<size_t>(got));
    const bool is_complete =
        request.find("\r\n\r\n") != std::string::npos || request.find("\n\n") != std::string::npos;
    if (!is_complete && request.size() <= limits_.request_bytes) continue;
    connection.response = is_complete
                              ? Answer(request)
                              : ToText({.code = 400, .body = "the request is too long\n"}, true);
    connection.request.clear();
    connection.phase = Phase::kResponse;
    connection.deadline = now + limits_.response;
    return true;
  }
}

bool HttpServer::Write(Connection& connection, Clock::time_point now) {
  while (connection.sent < connection.response.size()) {
    const ssize_t sent = send(connection.fd.get(), connection.response.data() + connection.sent,
                              connection.response.size() - connection.sent, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    connection.sent += static_cast<size_t>(sent);
  }
  connection.response = {};
  shutdown(connection.fd.get(), SHUT_WR);
  connection.phase = Phase::kDrain;
  connection.deadline = now + kDrain;
  return true;
}

std::string HttpServer::Answer(std::string_view request) {
  const std::string_view line = request.substr(0, request.find_first_of("\r\n"));
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last ||
      !line.substr(last + 1).starts_with("HTTP/1.")) {
    return ToText({.code = 400, .body = "this is not HTTP/1.1\n"}, true);
  }
  const std::string_view method = line.substr(0, first);
  if (method != "GET" && method != "HEAD") {
    return ToText({.code = 405, .body = "only GET and HEAD are served\n"}, true);
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  return ToText(handler_(target.substr(0, target.find('?'))), method == "GET");
}

}  // namespace mega
