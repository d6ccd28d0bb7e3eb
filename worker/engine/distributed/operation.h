// One operation in flight on one rank: the messages it exchanges and the sums it makes.
//
// On entering, every rank sends its header to every peer: that tells who has arrived, and that all
// entered the same operation. The data go at the same time.
//   all_reduce      part k of the elements belongs to rank k. Everybody sends part k to its owner
//                   in chunks; the owner adds each chunk in rank order and sends the sum to all.
//                   Small ones ride on the header instead, and every rank adds for itself: the
//                   same order, the same bits.
//   reduce_scatter  the first half of that.
//   all_gather, all_to_all, broadcast, send, recv   plain messages.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/engine/distributed/link.h"
#include "worker/engine/distributed/message.h"
#include "worker/engine/distributed/work_state.h"

namespace mega::distributed {

struct OperationSpec {
  OperationKind kind = OperationKind::kBarrier;
  ReduceOp reduce = ReduceOp::kSum;
  TensorView in;  // all_reduce and broadcast: in and out are the same view
  TensorView out;
  int peer = -1;  // root of a broadcast, the other end of send and recv: index in the group
};

// Buffers for incoming chunks, kept from one operation to the next.
struct Scratch {
  static constexpr int kSlots = 4;  // chunks in flight per operation
  std::vector<std::byte> slots[kSlots];
};

class Operation {
 public:
  static constexpr int64_t kChunkBytes = 256 * 1024;
  static constexpr int64_t kInlineBytes = 4096;

  Operation(const Group& group, Link& link, const OperationSpec& spec, int64_t sequence,
            std::shared_ptr<Work::State> state);
  Operation(const Operation&) = delete;

  void Start(Scratch& scratch);
  bool Progress();        // true when anything moved
  bool complete() const;  // all sent, received, added
  // Not OK: a message failed or a peer entered something else.
  const absl::Status& failure() const { return failure_; }
  // World ranks that still owe us a message or take one; with `headers`, only those that have not
  // entered the operation.
  std::vector<int64_t> AwaitedRanks(bool headers) const;
  void Cancel();       // asks all transfers to end
  bool quiet() const;  // none is active: the caller's buffers are free

  std::string Describe() const { return distributed::Describe(header_); }
  const OperationHeader& header() const { return header_; }
  Work::State& state() { return *state_; }
  int64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Message {
    int peer;
    Channel channel;
    int64_t index;
    std::span<std::byte> bytes;
    Transfer transfer;
  };
  // Messages started in order, with a bound on how many are active.
  struct Lane {
    std::vector<Message> messages;
    size_t ready = 0;  // may be started
    size_t started = 0;
    size_t ended = 0;  // every message before this one has ended
    size_t window = 0;
  };

  bool is_peer(int i) const { return i != group_.me; }
  bool two_sided() const {
    return spec_.kind == OperationKind::kSend || spec_.kind == OperationKind::kRecv;
  }
  Channel header_channel() const { return two_sided() ? Channel::kPeerHeader : Channel::kHeader; }
  uint64_t Tag(int sender, Channel channel, int64_t index) const {
    return MakeTag(group_.id, group_.ranks[sender], channel, sequence_, index);
  }
  // [begin, end) in elements of part k of n elements; parts differ by at most one element.
  int64_t PartBegin(int64_t elements, int k) const { return elements * k / group_.size(); }

  void PlanReduction(bool share_result);
  void PlanMoves();
  bool Pump(Lane& lane, bool sending);
  bool PumpHeaders();
  bool PumpSlots();
  void CheckHeader(int peer);
  bool Ended(int peer, const Transfer& transfer, int64_t bytes);
  void Fail(int peer, const absl::Status& status);
  void AddInline();

  const Group& group_;
  Link& link_;
  const OperationSpec spec_;
  const int64_t sequence_;
  const std::shared_ptr<Work::State> state_;
  OperationHeader header_;
  bool inline_ = false;
  Scratch* scratch_ = nullptr;

  std::vector<std::byte> header_out_;
  std::vector<std::vector<std::byte>> headers_in_;  // by peer
  std::vector<Transfer> header_sends_, header_recvs_;
  std::vector<bool> entered_;  // header came and agrees
  int headers_missing_ = 0;
  bool headers_sent_ = false;

  Lane sends_, recvs_, results_;
  std::vector<std::vector<Transfer>> slots_;  // [slot][peer]: chunks of my part on their way
  int64_t chunks_ = 0, next_chunk_ = 0, chunks_done_ = 0;
  std::byte* own_ = nullptr;     // my part of the input
  std::byte* target_ = nullptr;  // where its sum goes
  int64_t part_elements_ = 0;

  absl::Status failure_;
  int64_t bytes_sent_ = 0;
};

}  // namespace mega::distributed
