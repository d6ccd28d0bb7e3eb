// The plain cache: for each layer and sequence one block of keys and one of values, sized for the
// longest sequence from the start.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "coordinator/planner/model/model_spec.h"
#include "worker/engine/tensor/pool.h"
#include "worker/engine/transformer/kv_cache.h"

namespace mega::inference {

class ContiguousCache : public transformer::KvCache {
 public:
  // RESOURCE_EXHAUSTED when the device has no room for it.
  static absl::StatusOr<ContiguousCache> Make(const planner::ModelSpec& spec, int64_t sequences,
                                              int64_t capacity, Pool& pool);

  int64_t length(int64_t sequence) const override { return lengths_[sequence]; }
  int64_t capacity() const override { return capacity_; }
  void AppendAndAttend(Stream& stream, int64_t layer, int64_t sequence, TensorView q_TNH,
                       TensorView k_TGH, TensorView v_TGH, float scale, TensorView o_TNH) override;
  void Advance(int64_t sequence, int64_t positions) override;

 private:
  ContiguousCache(const planner::ModelSpec& spec, int64_t sequences, int64_t capacity, Pool& pool)
      : sequences_(sequences),
        capacity_(capacity),
        num_groups_(spec.num_query_groups),
        head_dim_(spec.head_dim),
        pool_(pool),
        lengths_(static_cast<size_t>(sequences), 0) {}
  TensorView Keys(int64_t layer, int64_t sequence, int64_t begin, int64_t count) const;
  TensorView Values(int64_t layer, int64_t sequence, int64_t begin, int64_t count) const;
  TensorView Block(const Tensor& all, int64_t layer, int64_t sequence, int64_t begin,
                   int64_t count) const;

  const int64_t sequences_, capacity_, num_groups_, head_dim_;
  Pool& pool_;
  Tensor keys_, values_;  // [layers · sequences · capacity, G, H]
  std::vector<int64_t> lengths_;
};

}  // namespace mega::inference
