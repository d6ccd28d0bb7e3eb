// A small HTTP/1.1 server that strangers cannot take away: one thread that waits for nobody, GET
// and HEAD, one request a connection.
//   server = HttpServer::Start(listen, [](std::string_view path) { return HttpServer::Response{…};
//   })
// Connections, their requests and their time are bounded; when there are too many, the one that has
// been about its request for longest goes. Its end cuts those under way.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/listen_address.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace mega {

class HttpServer {
 public:
  struct Response {
    int code = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
  };
  // Called from the server's thread; `path` is without the query.
  using Handler = std::function<Response(std::string_view path)>;

  struct Limits {
    size_t connections = 64;
    size_t request_bytes = 8 << 10;
    std::chrono::milliseconds request{5'000};    // from the connection to the end of its request
    std::chrono::milliseconds response{20'000};  // until it has been taken
  };

  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const ListenAddress& listen,
                                                           Handler handler, Limits limits);
  ~HttpServer();

  const ListenAddress& address() const { return address_; }  // with the real port

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase {
    kRequest,
    kResponse,
    kDrain
  };  // kDrain: answered; reads on until it is closed
  struct Connection {
    UniqueFd fd;
    Phase phase = Phase::kRequest;
    Clock::time_point deadline;
    std::string request;
    std::string response;
    size_t sent = 0;
  };

  HttpServer(Handler handler, Limits limits) : handler_(std::move(handler)), limits_(limits) {}

  void Serve(std::stop_token stop);
  void Accept(int listener, Clock::time_point now);
  void MakeRoom();
  // False: the connection is over.
  bool Advance(Connection& connection, Clock::time_point now);
  bool Read(Connection& connection, Clock::time_point now);
  bool Write(Connection& connection, Clock::time_point now);
  std::string Answer(std::string_view request);

  const Handler handler_;
  const Limits limits_;
  ListenAddress address_;
  std::vector<UniqueFd> listeners_;
  UniqueFd wake_;

  // The thread's own.
  std::list<Connection> connections_;  // oldest first
  Clock::time_point accept_again_;     // not before, for want of descriptors

  std::jthread thread_;
};

}  // namespace mega
