// The Communicator of every transport that has a Link and a ProgressLoop.
#pragma once

#include <memory>

#include "worker/engine/distributed/collective_queue.h"

namespace mega::distributed {

// Group of `options` as `rank` sees it. INVALID_ARGUMENT when the ranks make no group.
absl::StatusOr<Group> MakeGroup(const CommunicatorOptions& options, int64_t rank,
                                uint64_t identity);

class LinkCommunicator : public Communicator {
 public:
  LinkCommunicator(Group group, absl::Duration timeout, Link& link, ProgressLoop& loop);
  ~LinkCommunicator() override;

  int rank() const override { return queue_.group().me; }
  int size() const override { return queue_.group().size(); }
  Work AllReduce(TensorView io, ReduceOp op, Stream& stream) override;
  Work ReduceScatter(TensorView in, TensorView out, ReduceOp op, Stream& stream) override;
  Work AllGather(TensorView in, TensorView out, Stream& stream) override;
  Work AllToAll(TensorView in, TensorView out, Stream& stream) override;
  Work Broadcast(TensorView io, int root, Stream& stream) override;
  Work Send(TensorView in, int to, Stream& stream) override;
  Work Recv(TensorView out, int from, Stream& stream) override;
  Work Barrier(Stream& stream) override;
  void set_timeout(absl::Duration timeout) override { queue_.SetTimeout(timeout); }
  void Abort(absl::Status why) override;
  int64_t sequence() const override { return queue_.sequence(); }
  int64_t bytes_sent() const override { return queue_.bytes_sent(); }

 private:
  // The loop reads the buffers, so what `stream` still has to write to them comes first.
  Work Issue(const OperationSpec& spec, Stream& stream);

  ProgressLoop& loop_;
  CollectiveQueue queue_;
};

}  // namespace mega::distributed
