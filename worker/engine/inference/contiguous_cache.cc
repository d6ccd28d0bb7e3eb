#include "worker/engine/inference/contiguous_cache.h"

#include <utility>

#include "base/byte_count.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"

namespace mega::inference {

absl::StatusOr<ContiguousCache> ContiguousCache::Make(const planner::ModelSpec& spec,
                                                      int64_t sequences, int64_t capacity,
                                                      Pool& pool) {
  ContiguousCache cache(spec, sequences, capacity, pool);
  const Shape shape({spec.num_layers * sequences * capacity, spec.num_query_groups, spec.head_dim});
  for (Tensor* half : {&cache.keys_, &cache.values_}) {
    absl::StatusOr<Tensor> tensor = pool.TryAllocate(DType::kF32, shape, Purpose::kActivations);
    if (!tensor.ok()) {
      // Not the pool's words: its advice is of training.
      double bytes = 2 * sizeof(float);
      for (const int64_t dim : shape.dims()) bytes *= static_cast<double>(dim);
      return absl::ResourceExhaustedError(fmt::format(
          "the keys and values of {} {} with up to {} tokens each need {}, which the "
          "device does not have; lower max_new_tokens, or give fewer prompts at once",
          sequences, sequences == 1 ? "sequence" : "sequences", capacity, FormatBytes(bytes)));
    }
    *half = *std::move(tensor);
  }
  return cache;
}

TensorView ContiguousCache::Block(const Tensor& all, int64_t layer, int64_t sequence, int64_t begin,
                                  int64_t count) const {
  return all.view().Rows((layer * sequences_ + sequence) * capacity_ + begin, count);
}
TensorView ContiguousCache::Keys(int64_t layer, int64_t sequence, int64_t begin,
                                 int64_t count) const {
  return Block(keys_, layer, sequence, begin, count);
}
TensorView ContiguousCache::Values(int64_t layer, int64_t sequence, int64_t begin,
                                   int64_t count) const {
  return Block(values_, layer, sequence, begin, count);
}

void ContiguousCache::AppendAndAttend(Stream& stream, int64_t layer, int64_t sequence,
                                      TensorView q_TNH, TensorView k_TGH, TensorView v_TGH,
                                      float scale, TensorView o_TNH) {
  const int64_t T = q_TNH.dim(0), N = q_TNH.dim(1), G = num_groups_, H = head_dim_;
  const int64_t seen = lengths_[sequence], K = seen + T;
  MEGA_CHECK_LE(K, capacity_);
  kernels::Copy(stream, k_TGH, Keys(layer, sequence, seen, T));
  kernels::Copy(stream, v_TGH, Values(layer, sequence, seen, T));
  Tensor lse = pool_.Allocate(DType::kF32, Shape({1, N, T}), Purpose::kWorkspace);
  // The mask is aligned to the last key: query i of T sees keys up to seen + i.
  kernels::AttentionForward(
      stream, q_TNH.View({1, T, N, H}), Keys(layer, sequence, 0, K).View({1, K, G, H}),
      Values(layer, sequence, 0, K).View({1, K, G, H}), scale, {}, o_TNH.View({1, T, N, H}), lse);
}

void ContiguousCache::Advance(int64_t sequence, int64_t positions) {
  lengths_[sequence] += positions;
}

}  // namespace mega::inference
