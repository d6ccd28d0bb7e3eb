// All gradients of a rank in one contiguous f32 buffer, cut into buckets that are summed over the
// data-parallel ranks while backward still runs.
// Parameters lie in reverse forward order: backward finishes the last layers first, so their bucket
// can leave while earlier layers compute. A parameter is never split. The cut depends only on the
// parameters and the number of buckets, never on how many ranks there are.
//   Zero · backward of every micro-batch, MarkReady in the last · Finish · optimizer reads
//   main_grad
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "worker/engine/distributed/communicator.h"
#include "worker/engine/distributed/parameter.h"
#include "worker/engine/tensor/pool.h"

namespace mega::distributed {

class GradBuffer {
 public:
  // `parameters` in forward order, outliving the buffer; sets each main_grad. At most `buckets`
  // buckets of about equal bytes. data == nullptr: one rank, nothing to sum. overlap false: all
  // buckets are reduced in Finish.
  // RESOURCE_EXHAUSTED where the buffer does not fit on the device.
  static absl::StatusOr<std::unique_ptr<GradBuffer>> Make(Pool& pool,
                                                          std::span<Parameter* const> parameters,
                                                          int64_t buckets, Communicator* data,
                                                          bool overlap);
  // Same; running out of memory aborts.
  GradBuffer(Pool& pool, std::span<Parameter* const> parameters, int64_t buckets,
             Communicator* data, bool overlap);
  GradBuffer(const GradBuffer&) = delete;

  // Before the first micro-batch of a step.
  void Zero(Stream& stream);
  // The gradient of `parameter` is final for this step. A full bucket starts its all-reduce, in the
  // order of the buckets, which is the same on every rank.
  void MarkReady(const Parameter& parameter, Stream& stream);
  // Starts what has not started and waits for all. FAILED_PRECONDITION names parameters that nobody
  // marked; anything else comes from the communicator.
  absl::Status Finish(Stream& stream);

  TensorView whole() const { return buffer_.view(); }  // padding between parameters is zero
  int64_t buckets() const { return static_cast<int64_t>(buckets_.size()); }

 private:
  struct Bucket {
    TensorView grads;
    int64_t parameters = 0;
    int64_t unmarked = 0;  // in this step
    Work work;
  };
  struct Place {
    size_t bucket = 0;
    bool marked = false;
  };
  // `buffer`: zeros for all parameters, padded.
  GradBuffer(Tensor buffer, std::span<Parameter* const> parameters, int64_t buckets,
             Communicator* data, bool overlap);
  void StartFullBuckets(Stream& stream);

  Communicator* const data_;
  const bool overlap_;
  Tensor buffer_;
  std::vector<Bucket> buckets_;
  std::map<const Parameter*, Place> places_;
  size_t started_ = 0;  // buckets of this step
};

}  // namespace mega::distributed
