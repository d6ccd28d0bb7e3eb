// Bytes on one rank by purpose, fp32, data parallel without sharding.
#pragma once

#include <cstdint>

#include "coordinator/planner/model/model_spec.h"
#include "mega/v1/job.pb.h"
#include "mega/v1/plan.pb.h"

namespace mega::planner {

// Weights, gradients and optimizer are exact but for the rounding of each parameter to 64 bytes.
// Activations count what each block keeps for its backward, of one micro-batch (1F1B with one stage
// holds no more); workspace is what a block needs beside that, the tokens of a step, and the
// snapshot that a save writes from. tests/worker/engine/main compares it with a rank.
// `parameters` is CountParameters(model), which callers have at hand.
v1::MemoryBudget BudgetOf(const ModelSpec& model, int64_t parameters, const v1::JobSpec& resolved,
                          const v1::Layout& layout);

int64_t TotalBytes(const v1::MemoryBudget& budget);

// What no choice of micro-batch changes: weights, gradients, optimizer, comm.
int64_t FixedBytes(const v1::MemoryBudget& budget);

}  // namespace mega::planner
