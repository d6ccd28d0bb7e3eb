#include "coordinator/planner/memory_budget.h"

#include <algorithm>
#include <cmath>

namespace mega::planner {
namespace {

constexpr double kFloatBytes = 4;
// Tokens whose logits the chunked loss holds at a time: transformer/loss.h, LossHead::ChunkRows.
double LossChunk(int64_t vocab_size) {
  return std::clamp<int64_t>((int64_t{1} << 18) / std::max<int64_t>(vocab_size, 1), 128, 1024);
}

bool Saves(const v1::Checkpoint& checkpoint) {
  return checkpoint.save_on_exit() || checkpoint.interval_steps() > 0;
}

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
  const double replicas = std::max<int64_t>(layout.data_parallel_size(), 1);
  v1::MemoryBudget budget;
  // Beside the weights the angles of the rotary embedding, cosines and sines.
  budget.set_weights_bytes(Bytes(parameters + static_cast<double>(resolved.data().seq_length()) *
                                                  static_cast<double>(model.head_dim)));
  budget.set_grads_bytes(Bytes(parameters));
  budget.set_optimizer_bytes(Bytes(2 * parameters));  // exp_avg, exp_avg_sq
  // A layer keeps its two inputs and their norms, q, k, v, the attention's output and
  // log-sum-exp, gate and up, and their product.
  const double layer = 4 * width + 2.0 * model.q_size() + 2.0 * model.kv_size() +
                       model.num_attention_heads + 3 * ffn;
  budget.set_activations_bytes(Bytes(tokens * (model.num_layers * layer + 3 * width)));
  // The gradient streams of one block, a chunk of logits, tokens and labels of the rows of a step,
  // and the copy of weights and optimizer state that a save writes from, shared by the replicas.
  const double block = 2 * width + std::max(3 * ffn, 2.0 * model.q_size() + 2.0 * model.kv_size());
  const double logits =
      std::min(tokens, LossChunk(model.vocab_size)) * static_cast<double>(model.vocab_size);
  const double rows = std::ceil(static_cast<double>(resolved.training().global_batch_size()) /
                                (std::max<int64_t>(layout.micro_batch_size(), 1) * replicas)) *
                      tokens;
  const double snapshot = Saves(resolved.checkpoint()) ? 3 * parameters / replicas : 0;
  budget.set_workspace_bytes(Bytes(tokens * block + logits + 2 * rows + snapshot));
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
