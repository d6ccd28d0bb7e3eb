// Collectives of one group of ranks, one interface over several transports.
// Always true: a collective is entered by all ranks of its group, in the same order. Every one has
// a sequence number (from 1, per communicator) and a deadline, counted from when the one before it
// has ended; passing it, a dead peer or Abort() turns it and all later ones into an error that
// names the group, the sequence number, the operation and the ranks that did not arrive. Reductions
// add in rank order of the group, so results are bitwise equal on all ranks and from run to run.
// One thread issues operations; Work may be waited for by the same thread. Progress is made by a
// thread of the transport's own, so work moves on while the rank computes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "worker/engine/tensor/tensor.h"

namespace mega::distributed {

enum class ReduceOp : uint8_t { kSum, kMax, kMin };

// A started operation. Its buffers must stay until it is done.
class Work {
 public:
  class State;
  Work() = default;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  // Blocks (yielding) until done, failed, aborted or past the deadline. An empty Work is done.
  absl::Status Wait();
  bool Done() const;
  int64_t sequence() const;

 private:
  std::shared_ptr<State> state_;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  // index in the group
  virtual int size() const = 0;

  virtual Work AllReduce(TensorView io, ReduceOp op, Stream& stream) = 0;
  // in_N·k → out_k: this rank's k-th part of the sum.
  virtual Work ReduceScatter(TensorView in, TensorView out, ReduceOp op, Stream& stream) = 0;
  // in_k → out_N·k, in rank order.
  virtual Work AllGather(TensorView in, TensorView out, Stream& stream) = 0;
  // Part r of `in` goes to rank r; part r of `out` comes from rank r. Equal parts.
  virtual Work AllToAll(TensorView in, TensorView out, Stream& stream) = 0;
  virtual Work Broadcast(TensorView io, int root, Stream& stream) = 0;
  virtual Work Send(TensorView in, int to, Stream& stream) = 0;
  virtual Work Recv(TensorView out, int from, Stream& stream) = 0;
  virtual Work Barrier(Stream& stream) = 0;

  // Deadline of operations issued from now on.
  virtual void set_timeout(absl::Duration timeout) = 0;
  // Ends every pending and future operation with `why`, also on the peers (as far as they can be
  // reached). Thread-safe, idempotent.
  virtual void Abort(absl::Status why) = 0;

  // Newest sequence number issued by this rank, and bytes it has put on the wire. Thread-safe.
  virtual int64_t sequence() const = 0;
  virtual int64_t bytes_sent() const = 0;
};

struct CommunicatorOptions {
  std::string name;                            // "dp": part of every error
  std::vector<int64_t> ranks;                  // world ranks of the group, in order
  absl::Duration timeout = absl::Seconds(60);  // of one operation, from its start
};

}  // namespace mega::distributed
