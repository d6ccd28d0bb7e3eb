// Runs the actions of a schedule on this rank's stage. It decides nothing: what happens when is the
// schedule's (planner/schedule), how it is computed is the stage's.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "coordinator/planner/schedule/schedule.h"
#include "worker/engine/pipeline_parallel/stage_transport.h"
#include "worker/engine/profiler/phase_timer.h"
#include "worker/engine/transformer/stage.h"

namespace mega::pipeline_parallel {

// The actions of a schedule that belong to other modules.
struct StepActions {
  std::function<absl::Status()> reduce_grads;  // waits for all buckets
  std::function<absl::Status()> step;          // clips, updates
};

class Executor {
 public:
  // `transport` is null for a single stage. Seconds go to `timer`. All outlive the executor.
  Executor(transformer::Stage& stage, v1::ScheduleSpec schedule, int64_t stage_index,
           StageTransport* transport, profiler::PhaseTimer& timer);

  // Main gradients must be zero and the stage's loss scale set. An error of the transport or of an
  // action ends the step; the next BeginStep frees what it left.
  absl::Status RunStep(std::span<const transformer::MicroBatch> batches,
                       const StepActions& actions);
  absl::Status RunForwardOnly(std::span<const transformer::MicroBatch> batches);

 private:
  absl::Status Run(std::span<const transformer::MicroBatch> batches, bool forward_only,
                   const StepActions& actions);
  absl::StatusOr<const std::vector<planner::Action>*> Expand(int64_t micro_batches,
                                                             bool forward_only);
  absl::Status RunAction(const planner::Action& action, const transformer::MicroBatch& batch,
                         const StepActions& actions);
  // A tensor on its way between an action and the next that uses it.
  Tensor& InFlight(std::vector<Tensor>& tensors, int64_t micro_batch);

  transformer::Stage& stage_;
  const v1::ScheduleSpec schedule_;
  const int64_t stage_index_;
  StageTransport* const transport_;
  profiler::PhaseTimer& timer_;

  // The last expansion; it changes only with the number of micro-batches.
  struct Expansion {
    int64_t micro_batches = -1;
    std::vector<planner::Action> actions;
  };
  Expansion train_, evaluate_;
  std::vector<Tensor> forward_, backward_;  // by micro-batch
  bool forward_only_ = false;
};

}  // namespace mega::pipeline_parallel
