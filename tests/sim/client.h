// Somebody who submits one job, asks again until there is an answer, and may change their mind.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tests/sim/coordinator.h"

namespace mega::sim {

class Client {
 public:
  struct Options {
    std::string name;
    int64_t ranks = 1;
    int64_t steps = 0;  // 0: as many as chance says, and it may change its mind
    std::optional<absl::Duration> submit = {};  // unset: when chance says
    std::string name_space = "default";
    v1::Scheduling scheduling = {};
    // Its job can never run; it gives up when nobody else's is left.
    bool is_hopeless = false;
  };
  Client(World& world, Coordinator& coordinator, Invariants& invariants, Options options);
  void Start();
  bool IsDone() const { return is_done_; }

 private:
  void Submit();
  void Cancel();
  void GiveUpWhenAlone();

  World& world_;
  Coordinator& coordinator_;
  Invariants& invariants_;
  v1::CoreSubmit submit_;
  int64_t uids_ = 0;
  std::string uid_;  // as acked
  bool is_done_ = false;
  const std::optional<absl::Duration> submit_at_;
  const bool is_steady_;
  const bool is_hopeless_;
};

// Somebody who sets a namespace's limits, and asks again until there is an answer.
class Operator {
 public:
  Operator(World& world, Coordinator& coordinator) : world_(world), coordinator_(coordinator) {}
  void SetLimits(absl::Duration when, v1::Namespace limits);

 private:
  World& world_;
  Coordinator& coordinator_;
};

}  // namespace mega::sim
