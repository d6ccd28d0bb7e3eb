// AdamW over a rank's parameters. The f32 values are the masters; both moments live in the pool
// (Purpose::kOptimizer) and are named for checkpoints: optimizer.exp_avg/NAME,
// optimizer.exp_avg_sq/NAME.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "mega/v1/job.pb.h"
#include "worker/engine/distributed/parameter.h"
#include "worker/engine/optimizer/lr_schedule.h"
#include "worker/engine/tensor/pool.h"

namespace mega::optimizer {

struct StepResult {
  double grad_norm = 0;  // before clipping
  double lr = 0;
};

// A state tensor as a checkpoint sees it: same shape and place as its parameter.
struct NamedState {
  std::string name;
  TensorView value;
  const distributed::Parameter* parameter;
};

class AdamW {
 public:
  // `optimizer` is resolved. Parameters must have their main_grad by the first Step.
  // RESOURCE_EXHAUSTED where the moments do not fit on the device.
  static absl::StatusOr<AdamW> Make(const v1::Optimizer& optimizer, int64_t total_steps,
                                    std::span<distributed::Parameter* const> parameters, Pool& pool,
                                    Stream& stream);

  // One update from the reduced main gradients, each multiplied by grad_scale first. Steps count
  // from 1. A gradient that is not finite is DATA_LOSS naming step and parameter; nothing changed.
  absl::StatusOr<StepResult> Step(int64_t step, double grad_scale);

  std::vector<NamedState> states() const;

 private:
  struct Moments {
    distributed::Parameter* parameter;
    TensorView exp_avg, exp_avg_sq;
  };
  AdamW(const v1::Optimizer& options, LrSchedule schedule, Stream& stream)
      : options_(options), schedule_(schedule), stream_(&stream) {}

  v1::Optimizer options_;
  LrSchedule schedule_;
  Stream* stream_;
  std::vector<distributed::Parameter*> parameters_;
  Tensor memory_;  // all moments
  std::vector<Moments> moments_;
};

}  // namespace mega::optimizer
