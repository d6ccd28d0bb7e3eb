// Sessions between workers and the coordinator: streams that keep order, break, are held up one way
// or both, and whose messages may arrive long after the other end has moved on.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "mega/v1/worker.pb.h"
#include "tests/sim/world.h"

namespace mega::sim {

class Coordinator;
class Machine;

struct Connection {
  int64_t id = 0;
  Machine* machine = nullptr;
  bool worker_open = true;  // the worker still holds its end
  bool coordinator_open =
      true;                  // the coordinator still holds its end (also before it was accepted)
  bool is_answered = false;  // the worker has heard something on it
  bool up_cut = false;       // what is in flight will not arrive
  bool down_cut = false;
  int64_t coordinator_life = 0;  // which life of the coordinator accepted it
  int64_t session = 0;           // number that the coordinator gave it, with its first message
  // In flight: when it would arrive, and what. A stream keeps order.
  std::deque<std::pair<absl::Duration, v1::WorkerMessage>> up;
  std::deque<std::pair<absl::Duration, v1::CoordinatorMessage>> down;
};
using ConnectionPtr = std::shared_ptr<Connection>;

class Network {
 public:
  struct Options {
    absl::Duration delay_max = absl::Milliseconds(5);
    double slow_chance = 0;  // a message that takes up to slow_max
    absl::Duration slow_max = absl::Seconds(8);
    double duplicate_chance = 0;
    double drop_chance = 0;  // between workers; a stream to the coordinator repeats or breaks
  };
  Network(World& world, Options options) : world_(world), options_(options) {}
  void SetCoordinator(Coordinator* coordinator) { coordinator_ = coordinator; }

  ConnectionPtr Connect(Machine& machine);
  void SendUp(const ConnectionPtr& connection, v1::WorkerMessage message);
  void SendDown(const ConnectionPtr& connection, v1::CoordinatorMessage message);
  // The other end learns of it: soon, or (`silently`: power loss) from keepalive.
  void CloseByWorker(const ConnectionPtr& connection, bool silently);
  void CloseByCoordinator(const ConnectionPtr& connection);

  // Between workers: single messages in any order, lost, late or twice.
  void AddMachine(Machine& machine);
  void SendPeer(const std::string& from, const std::string& to, std::function<void(Machine&)> what);
  void CutPeers(const std::string& from, const std::string& to, absl::Duration until);
  void HoldPeers(const std::string& from, const std::string& to, absl::Duration until);

  // Nothing held up, slowed or lost from now on.
  void Heal();

 private:
  absl::Duration Delay();
  void PumpUp(const ConnectionPtr& connection);
  void PumpDown(const ConnectionPtr& connection);
  void ArriveUp(const ConnectionPtr& connection, const v1::WorkerMessage& message);
  void ArriveDown(const ConnectionPtr& connection, const v1::CoordinatorMessage& message);
  using Link = std::pair<std::string, std::string>;  // from, to
  void ArrivePeer(const Link& link, Machine& machine, std::function<void(Machine&)> what);

  World& world_;
  Options options_;
  Coordinator* coordinator_ = nullptr;
  int64_t next_id_ = 1;
  std::map<std::string, Machine*> machines_;  // by address
  std::map<Link, absl::Duration> cut_until_, held_until_;
};

}  // namespace mega::sim
