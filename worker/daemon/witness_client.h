// Asks the witnesses when this worker has gone half a lease without renewal: have you a session?
// Those that have are asked to carry a heartbeat to the coordinator.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/tls/identity.h"
#include "mega/v1/worker.grpc.pb.h"
#include "worker/daemon/lease/lease.h"

namespace mega::daemon {

class WitnessClient {
 public:
  // `heard` gets what comes back, lease::Answered or a relayed lease::Granted, from gRPC's threads;
  // it must return at once.
  WitnessClient(const v1::Node& self, std::shared_ptr<const tls::Identity> identity,
                std::function<void(lease::Input)> heard);
  ~WitnessClient() { Stop(); }

  // Returns at once. `round` is the heartbeat that may be carried.
  void Ask(int64_t round, const v1::WitnessSet& witnesses);
  // Ends all calls and asks nobody any more; nothing is heard after it.
  void Stop();

 private:
  struct Call;
  using Place = std::pair<std::string, std::string>;
  void Query(const std::shared_ptr<Call>& call);
  void Relay(const std::shared_ptr<Call>& call);
  void End(const std::shared_ptr<Call>& call);

  const std::string node_;
  const int64_t incarnation_;
  const std::shared_ptr<const tls::Identity> identity_;
  const std::function<void(lease::Input)> heard_;

  Mutex mu_;
  CondVar changed_;
  bool stopped_ MEGA_GUARDED_BY(mu_) = false;
  std::map<Place, std::shared_ptr<v1::WitnessService::Stub>> stubs_
      MEGA_GUARDED_BY(mu_);  // by node and address; of the newest set
  std::set<std::shared_ptr<Call>> calls_ MEGA_GUARDED_BY(mu_);
};

}  // namespace mega::daemon
