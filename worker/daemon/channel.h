// Channels to the coordinator. Session and bulk streams each have a connection of their own, so
// that logs never queue before a heartbeat.
#pragma once

#include <grpcpp/channel.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>

#include "absl/time/time.h"

namespace mega::daemon {

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address);
// To another worker: dialled by gRPC itself, at least once a second while calls come.
std::shared_ptr<grpc::Channel> MakePeerChannel(const std::string& address);

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
