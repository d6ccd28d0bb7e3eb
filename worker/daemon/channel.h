// Channels to the coordinator. Session and bulk streams each have a connection of their own, so
// that logs never queue before a heartbeat.
#pragma once

#include <grpcpp/channel.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>

#include "absl/time/time.h"
#include "base/tls/identity.h"

namespace mega::daemon {

// Where the coordinator is, and who this worker is to it.
struct Coordinator {
  std::string address;                              // host:port
  std::shared_ptr<const tls::Identity> identity{};  // null: plain text
};
std::shared_ptr<grpc::Channel> MakeChannel(const Coordinator& coordinator);
// To the worker of another node: dialled by gRPC itself, at least once a second while calls come.
// Over TLS whoever answers there must be that node.
std::shared_ptr<grpc::Channel> MakePeerChannel(const std::string& address, const std::string& node,
                                               const tls::Identity* identity);

// 0.2 s, doubling to 5 s, each time spread over half to all of it: a fleet that lost its
// coordinator must not return as one.
class Backoff {
 public:
  Backoff() : random_(std::random_device{}()) {}
  absl::Duration Next();
  void Reset() { span_ = kFirst; }

 private:
  static constexpr absl::Duration kFirst = absl::Milliseconds(200);
  static constexpr absl::Duration kLongest = absl::Seconds(5);
  absl::Duration span_ = kFirst;
  std::minstd_rand random_;
};

}  // namespace mega::daemon
