#include "worker/engine/distributed/operation.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "worker/engine/distributed/reduce.h"

namespace mega::distributed {
namespace {

constexpr size_t kWindowPerPeer = 8;  // messages in flight to or from each peer

std::span<std::byte> BytesOf(const TensorView& view, int64_t begin, int64_t count) {
  const int64_t size = SizeOf(view.dtype());
  return {view.data() + begin * size, static_cast<size_t>(count * size)};
}

void CopyUnlessSame(std::span<const std::byte> from, std::span<std::byte> to) {
  if (from.data() != to.data() && !from.empty()) std::memmove(to.data(), from.data(), from.size());
}

}  // namespace

Operation::Operation(const Group& group, Link& link, const OperationSpec& spec, int64_t sequence,
                     std::shared_ptr<Work::State> state)
    : group_(group),
      link_(link),
      spec_(spec),
      sequence_(sequence),
      state_(std::move(state)),
      headers_in_(group.size()),
      header_sends_(group.size()),
      header_recvs_(group.size()),
      entered_(group.size(), false) {
  const bool out_is_larger = spec.out.bytes() > spec.in.bytes();
  header_ = {.identity = group.identity,
             .sequence = sequence,
             .kind = spec.kind,
             .reduce = static_cast<uint32_t>(spec.reduce),
             .dtype = static_cast<uint32_t>(spec.in.data() ? spec.in.dtype() : spec.out.dtype()),
             .root = two_sided() ? -1 : spec.peer,
             .bytes = out_is_larger ? spec.out.bytes() : spec.in.bytes()};
  inline_ = spec.kind == OperationKind::kAllReduce && header_.bytes <= kInlineBytes;
}

void Operation::Start(Scratch& scratch) {
  state_->Start();
  scratch_ = &scratch;
  const size_t payload = inline_ ? header_.bytes : 0;
  header_out_.resize(sizeof(header_) + payload);
  std::memcpy(header_out_.data(), &header_, sizeof(header_));
  if (payload > 0) std::memcpy(header_out_.data() + sizeof(header_), spec_.in.data(), payload);
  for (int i = 0; i < group_.size(); ++i) {
    if (!is_peer(i) || (two_sided() && i != spec_.peer)) continue;
    if (spec_.kind != OperationKind::kRecv) {
      link_.Send(group_.ranks[i], Tag(group_.me, header_channel(), 0), header_out_,
                 header_sends_[i]);
      bytes_sent_ += static_cast<int64_t>(header_out_.size());
    }
    if (spec_.kind == OperationKind::kSend) continue;
    // As large as any header may be: a peer that entered something else is told by name.
    headers_in_[i].resize(sizeof(header_) + kInlineBytes);
    link_.Recv(group_.ranks[i], Tag(i, header_channel(), 0), headers_in_[i], header_recvs_[i]);
    ++headers_missing_;
  }
  if (spec_.kind == OperationKind::kAllReduce && !inline_) PlanReduction(/*share_result=*/true);
  if (spec_.kind == OperationKind::kReduceScatter) PlanReduction(/*share_result=*/false);
  PlanMoves();
  const size_t window = kWindowPerPeer * group_.size();
  sends_.window = recvs_.window = results_.window = window;
  sends_.ready = sends_.messages.size();
  recvs_.ready = recvs_.messages.size();
}

// Chunk by chunk and, within one, starting behind my own rank, so that not all send to rank 0
// first.
void Operation::PlanReduction(bool share_result) {
  const int n = group_.size();
  const int64_t elements = spec_.in.elements();
  const int64_t chunk = kChunkBytes / SizeOf(spec_.in.dtype());
  const int64_t largest_part = (elements + n - 1) / n;
  const int64_t my_begin = PartBegin(elements, group_.me);
  part_elements_ = PartBegin(elements, group_.me + 1) - my_begin;
  own_ = BytesOf(spec_.in, my_begin, 0).data();
  target_ = share_result ? own_ : spec_.out.data();
  chunks_ = (part_elements_ + chunk - 1) / chunk;
  for (int64_t c = 0; c * chunk < largest_part; ++c) {
    for (int step = 1; step < n; ++step) {
      const int peer = (group_.me + step) % n;
      const int64_t begin = PartBegin(elements, peer) + c * chunk;
      const int64_t count = std::min(chunk, PartBegin(elements, peer + 1) - begin);
      if (count > 0) {
        const std::span<std::byte> piece = BytesOf(spec_.in, begin, count);
        sends_.messages.push_back({peer, Channel::kData, c, piece, {}});
        if (share_result) recvs_.messages.push_back({peer, Channel::kResult, c, piece, {}});
      }
      const int64_t my_count = std::min(chunk, part_elements_ - c * chunk);
      if (share_result && my_count > 0) {
        results_.messages.push_back(
            {peer, Channel::kResult, c, BytesOf(spec_.in, my_begin + c * chunk, my_count), {}});
      }
    }
  }
  slots_.resize(n > 1 ? std::min<int64_t>(Scratch::kSlots, chunks_) : 0);
  for (std::vector<Transfer>& slot : slots_) slot.resize(n);
  for (size_t s = 0; s < slots_.size(); ++s) {
    const int64_t piece = std::min(chunk, part_elements_) * SizeOf(spec_.in.dtype());
    if (static_cast<int64_t>(scratch_->slots[s].size()) < piece * (n - 1))
      scratch_->slots[s].resize(piece * (n - 1));
  }
  if (n == 1) {
    CopyUnlessSame(BytesOf(spec_.in, 0, elements), BytesOf(spec_.out, 0, elements));
    chunks_ = 0;
  }
}

void Operation::PlanMoves() {
  const int n = group_.size();
  const int me = group_.me;
  switch (spec_.kind) {
    case OperationKind::kAllGather: {
      const int64_t part = spec_.in.elements();
      CopyUnlessSame(BytesOf(spec_.in, 0, part), BytesOf(spec_.out, me * part, part));
      for (int step = 1; step < n; ++step) {
        const int to = (me + step) % n, from = (me + n - step) % n;
        sends_.messages.push_back({to, Channel::kData, 0, BytesOf(spec_.in, 0, part), {}});
        recvs_.messages.push_back(
            {from, Channel::kData, 0, BytesOf(spec_.out, from * part, part), {}});
      }
      break;
    }
    case OperationKind::kAllToAll: {
      const int64_t part = spec_.in.elements() / n;
      CopyUnlessSame(BytesOf(spec_.in, me * part, part), BytesOf(spec_.out, me * part, part));
      for (int step = 1; step < n; ++step) {
        const int to = (me + step) % n, from = (me + n - step) % n;
        sends_.messages.push_back({to, Channel::kData, 0, BytesOf(spec_.in, to * part, part), {}});
        recvs_.messages.push_back(
            {from, Channel::kData, 0, BytesOf(spec_.out, from * part, part), {}});
      }
      break;
    }
    case OperationKind::kBroadcast: {
      const std::span<std::byte> all = BytesOf(spec_.in, 0, spec_.in.elements());
      if (me != spec_.peer) recvs_.messages.push_back({spec_.peer, Channel::kData, 0, all, {}});
      for (int i = 0; i < n && me == spec_.peer; ++i)
        if (is_peer(i)) sends_.messages.push_back({i, Channel::kData, 0, all, {}});
      break;
    }
    case OperationKind::kSend:
      sends_.messages.push_back(
          {spec_.peer, Channel::kPeerData, 0, BytesOf(spec_.in, 0, spec_.in.elements()), {}});
      break;
    case OperationKind::kRecv:
      recvs_.messages.push_back(
          {spec_.peer, Channel::kPeerData, 0, BytesOf(spec_.out, 0, spec_.out.elements()), {}});
      break;
    case OperationKind::kAllReduce:
    case OperationKind::kReduceScatter:
    case OperationKind::kBarrier:
      break;
  }
  for (Lane* lane : {&sends_, &recvs_})
    std::erase_if(lane->messages, [](const Message& m) { return m.bytes.empty(); });
}

bool Operation::Progress() {
  if (!failure_.ok()) return false;
  bool moved = PumpHeaders();
  moved |= PumpSlots();
  moved |= Pump(recvs_, /*sending=*/false);
  moved |= Pump(sends_, /*sending=*/true);
  moved |= Pump(results_, /*sending=*/true);
  return moved;
}

bool Operation::PumpHeaders() {
  bool moved = false;
  for (int i = 0; i < group_.size() && !headers_sent_; ++i) {
    const Transfer& transfer = header_sends_[i];
    if (transfer.active) break;
    if (!Ended(i, transfer, transfer.bytes)) return false;
    headers_sent_ = i + 1 == group_.size();
  }
  if (headers_missing_ == 0) return false;
  for (int i = 0; i < group_.size(); ++i) {
    if (entered_[i] || headers_in_[i].empty() || header_recvs_[i].active) continue;
    moved = true;
    --headers_missing_;
    CheckHeader(i);
    if (!failure_.ok()) return true;
    entered_[i] = true;
  }
  if (inline_ && headers_missing_ == 0) AddInline();
  return moved;
}

void Operation::CheckHeader(int peer) {
  const Transfer& transfer = header_recvs_[peer];
  if (!transfer.status.ok()) return Fail(peer, transfer.status);
  OperationHeader theirs;
  if (transfer.bytes < static_cast<int64_t>(sizeof(theirs)))
    return Fail(peer, DataLoss("a header of {} bytes", transfer.bytes));
  std::memcpy(&theirs, headers_in_[peer].data(), sizeof(theirs));
  if (theirs.identity != group_.identity) {
    failure_ = FailedPrecondition(
        "{}: {}: rank {} belongs to another job, attempt or epoch; it is refused", group_.name,
        Describe(), group_.ranks[peer]);
    return;
  }
  OperationHeader expected = header_;
  if (spec_.kind == OperationKind::kRecv) expected.kind = OperationKind::kSend;
  const bool same =
      theirs == expected &&
      transfer.bytes == static_cast<int64_t>(sizeof(theirs) + (inline_ ? header_.bytes : 0));
  if (!same) {
    failure_ = FailedPrecondition(
        "{}: rank {} entered {}, but rank {} entered {}; every rank must run the same plan",
        group_.name, group_.ranks[group_.me], Describe(), group_.ranks[peer],
        distributed::Describe(theirs));
  }
}

void Operation::AddInline() {
  std::vector<const std::byte*> sources(group_.size());
  for (int i = 0; i < group_.size(); ++i)
    sources[i] = is_peer(i) ? headers_in_[i].data() + sizeof(header_) : spec_.in.data();
  ReduceInOrder(spec_.in.dtype(), spec_.reduce, sources, spec_.in.data(), spec_.in.elements());
}

bool Operation::Pump(Lane& lane, bool sending) {
  bool moved = false;
  while (lane.ended < lane.started) {
    const Message& message = lane.messages[lane.ended];
    if (message.transfer.active) break;
    const Transfer& transfer = message.transfer;
    const int64_t due = static_cast<int64_t>(message.bytes.size());
    if (!Ended(message.peer, transfer, sending ? transfer.bytes : due)) return moved;
    ++lane.ended;
    moved = true;
  }
  while (lane.started < lane.ready && lane.started - lane.ended < lane.window) {
    Message& message = lane.messages[lane.started++];
    const int64_t rank = group_.ranks[message.peer];
    if (sending) {
      link_.Send(rank, Tag(group_.me, message.channel, message.index), message.bytes,
                 message.transfer);
      bytes_sent_ += static_cast<int64_t>(message.bytes.size());
    } else {
      link_.Recv(rank, Tag(message.peer, message.channel, message.index), message.bytes,
                 message.transfer);
    }
    moved = true;
  }
  return moved;
}

// Chunks are added in order; chunk c waits in slot c modulo their number.
bool Operation::PumpSlots() {
  if (chunks_done_ == chunks_) return false;
  const int n = group_.size();
  const int64_t size = SizeOf(spec_.in.dtype());
  const int64_t chunk_elements = kChunkBytes / size;
  const int64_t slots = static_cast<int64_t>(slots_.size());
  const auto count_of = [&](int64_t chunk) {
    return std::min(chunk_elements, part_elements_ - chunk * chunk_elements);
  };
  const auto piece_of = [&](int64_t chunk, int peer) {  // where the piece of `peer` arrives
    const int place = peer < group_.me ? peer : peer - 1;
    return scratch_->slots[chunk % slots].data() + place * count_of(0) * size;
  };
  bool moved = false;
  for (; next_chunk_ < std::min(chunks_, chunks_done_ + slots); ++next_chunk_) {
    for (int i = 0; i < n; ++i) {
      if (!is_peer(i)) continue;
      link_.Recv(group_.ranks[i], Tag(i, Channel::kData, next_chunk_),
                 {piece_of(next_chunk_, i), static_cast<size_t>(count_of(next_chunk_) * size)},
                 slots_[next_chunk_ % slots][i]);
    }
    moved = true;
  }
  const std::vector<Transfer>& pieces = slots_[chunks_done_ % slots];
  if (std::ranges::any_of(pieces, &Transfer::active)) return moved;
  const int64_t bytes = count_of(chunks_done_) * size;
  const int64_t offset = chunks_done_ * chunk_elements * size;
  std::vector<const std::byte*> sources(n, own_ + offset);
  for (int i = 0; i < n; ++i) {
    if (!is_peer(i)) continue;
    if (!Ended(i, pieces[i], bytes)) return moved;
    sources[i] = piece_of(chunks_done_, i);
  }
  ReduceInOrder(spec_.in.dtype(), spec_.reduce, sources, target_ + offset, bytes / size);
  ++chunks_done_;
  if (!results_.messages.empty()) results_.ready = chunks_done_ * (n - 1);
  return true;
}

// False when the message failed; `failure_` says why, unless a header that explains it better is
// still on its way.
bool Operation::Ended(int peer, const Transfer& transfer, int64_t bytes) {
  if (transfer.status.ok() && transfer.bytes == bytes) return true;
  const bool header_due = !headers_in_[peer].empty() && !entered_[peer];
  if (header_due && link_.PeerStatus(group_.ranks[peer]).ok()) return false;
  Fail(peer, transfer.status.ok()
                 ? DataLoss("{} bytes came where {} were due", transfer.bytes, bytes)
                 : transfer.status);
  return false;
}

void Operation::Fail(int peer, const absl::Status& status) {
  const absl::Status lost = link_.PeerStatus(group_.ranks[peer]);
  failure_ = lost.ok() ? Annotate(status, fmt::format("{}: {}: rank {}", group_.name, Describe(),
                                                      group_.ranks[peer]))
                       : Unavailable("{}: {}: rank {} is lost: {}", group_.name, Describe(),
                                     group_.ranks[peer], std::string(lost.message()));
}

bool Operation::complete() const {
  if (headers_missing_ > 0 || chunks_done_ < chunks_) return false;
  for (const Lane* lane : {&sends_, &recvs_, &results_})
    if (lane->ended < lane->messages.size()) return false;
  return headers_sent_;
}

std::vector<int64_t> Operation::AwaitedRanks(bool headers) const {
  std::vector<bool> awaited(group_.size(), false);
  for (int i = 0; i < group_.size(); ++i)
    if (!headers_in_[i].empty() && !entered_[i]) awaited[i] = true;
  if (!headers) {
    for (int i = 0; i < group_.size(); ++i)
      if (header_sends_[i].active) awaited[i] = true;
    for (const Lane* lane : {&sends_, &recvs_, &results_})
      for (size_t m = lane->ended; m < lane->started; ++m)
        if (lane->messages[m].transfer.active) awaited[lane->messages[m].peer] = true;
    for (const std::vector<Transfer>& slot : slots_)
      for (int i = 0; i < group_.size(); ++i)
        if (slot[i].active) awaited[i] = true;
  }
  std::vector<int64_t> ranks;
  for (int i = 0; i < group_.size(); ++i)
    if (awaited[i]) ranks.push_back(group_.ranks[i]);
  return ranks;
}

void Operation::Cancel() {
  const auto cancel = [this](Transfer& transfer) {
    if (transfer.active) link_.Cancel(transfer);
  };
  std::ranges::for_each(header_sends_, cancel);
  std::ranges::for_each(header_recvs_, cancel);
  for (Lane* lane : {&sends_, &recvs_, &results_})
    for (Message& message : lane->messages) cancel(message.transfer);
  for (std::vector<Transfer>& slot : slots_) std::ranges::for_each(slot, cancel);
}

bool Operation::quiet() const {
  if (std::ranges::any_of(header_sends_, &Transfer::active)) return false;
  if (std::ranges::any_of(header_recvs_, &Transfer::active)) return false;
  for (const Lane* lane : {&sends_, &recvs_, &results_})
    for (const Message& message : lane->messages)
      if (message.transfer.active) return false;
  for (const std::vector<Transfer>& slot : slots_)
    if (std::ranges::any_of(slot, &Transfer::active)) return false;
  return true;
}

}  // namespace mega::distributed
