// Somebody who submits one job, asks again until there is an answer, and may change their mind.
#pragma once

#include <string>

#include "tests/sim/coordinator.h"

namespace mega::sim {

class Client {
 public:
  // `steps` 0: as many as chance says, and it may change its mind.
  Client(World& world, Coordinator& coordinator, Invariants& invariants, std::string name,
         int64_t ranks, int64_t steps = 0);
  void Start();
  bool IsDone() const { return is_done_; }

 private:
  void Submit();
  void Cancel();

  World& world_;
  Coordinator& coordinator_;
  Invariants& invariants_;
  v1::CoreSubmit submit_;
  int64_t uids_ = 0;
  std::string uid_;  // as acked
  bool is_done_ = false;
  const bool is_steady_;
};

}  // namespace mega::sim
