#include "coordinator/planner/memory_budget.h"

#include <algorithm>

namespace mega::planner {
namespace {

constexpr double kFloatBytes = 4;
// Tokens whose logits the chunked loss holds at a time.
constexpr int64_t kLossChunk = 1024;

// Sizes of a hostile spec may leave 64 bits; they saturate where no machine is that large.
int64_t Bytes(double floats) {
  constexpr double kMost = 4e18;
  return static_cast<int64_t>(std::min(floats * kFloatBytes, kMost));
}

}  // namespace

v1::MemoryBudget BudgetOf(const ModelSpec& model, int64_t parameter_count,
                          const v1::JobSpec& resolved, const v1::Layout& layout) {
  const auto parameters = static_cast<double>(parameter_count);
  const double width = model.hidden_size, ffn = model.ffn_hidden_size;
  const double tokens =
      static_cast<double>(layout.micro_batch_size()) * resolved.data().seq_length();
  v1::MemoryBudget budget;
  budget.set_weights_bytes(Bytes(parameters));
  budget.set_grads_bytes(Bytes(parameters));
  budget.set_optimizer_bytes(Bytes(2 * parameters));  // exp_avg, exp_avg_sq
  // A layer keeps its two inputs and their norms, q, k, v, the attention's output and
  // log-sum-exp, gate and up, and their product.
  const double layer = 4 * width + 2.0 * model.q_size() + 2.0 * model.kv_size() +
                       model.num_attention_heads + 3 * ffn;
  budget.set_activations_bytes(Bytes(tokens * (model.num_layers * layer + 3 * width)));
  // The gradient streams of one block, and a chunk of logits.
  const double block = 2 * width + std::max(3 * ffn, 2.0 * model.q_size() + 2.0 * model.kv_size());
  budget.set_workspace_bytes(Bytes(tokens * block + std::min<double>(tokens, kLossChunk) *
                                                        static_cast<double>(model.vocab_size)));
  // A bucket is copied once while it travels.
  const double buckets = std::max<int64_t>(resolved.communication().grad_buffer_size(), 1);
  if (layout.data_parallel_size() > 1) budget.set_comm_bytes(Bytes(parameters / buckets));
  return budget;
}

int64_t FixedBytes(const v1::MemoryBudget& budget) {
  return budget.weights_bytes() + budget.grads_bytes() + budget.optimizer_bytes() +
         budget.comm_bytes();
}

int64_t TotalBytes(const v1::MemoryBudget& budget) {
  return FixedBytes(budget) + budget.activations_bytes() + budget.workspace_bytes();
}

}  // namespace mega::planner
