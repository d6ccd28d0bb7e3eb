// Sessions between workers and the coordinator: streams that keep order, break, are held up one way
// or both, and whose messages may arrive long after the other end has moved on.
#pragma once

#include <deque>
#include <memory>
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
      true;             // the coordinator still holds its end (also before it was accepted)
  bool up_cut = false;  // what is in flight will not arrive
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
  };
  Network(World& world, Options options) : world_(world), options_(options) {}
  void SetCoordinator(Coordinator* coordinator) { coordinator_ = coordinator; }

  ConnectionPtr Connect(Machine& machine);
  void SendUp(const ConnectionPtr& connection, v1::WorkerMessage message);
  void SendDown(const ConnectionPtr& connection, v1::CoordinatorMessage message);
  // The other end learns of it: soon, or (`silently`: power loss) from keepalive.
  void CloseByWorker(const ConnectionPtr& connection, bool silently);
  void CloseByCoordinator(const ConnectionPtr& connection);
  // Nothing held up or slowed from now on.
  void Heal() { options_ = Options(); }

 private:
  absl::Duration Delay();
  void PumpUp(const ConnectionPtr& connection);
  void PumpDown(const ConnectionPtr& connection);
  void ArriveUp(const ConnectionPtr& connection, const v1::WorkerMessage& message);
  void ArriveDown(const ConnectionPtr& connection, const v1::CoordinatorMessage& message);

  World& world_;
  Options options_;
  Coordinator* coordinator_ = nullptr;
  int64_t next_id_ = 1;
};

}  // namespace mega::sim
