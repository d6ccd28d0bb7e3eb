#include "worker/engine/distributed/link_communicator.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"

namespace mega::distributed {
namespace {

// Folded to the 12 bits that tags have for it.
uint32_t GroupId(const std::string& name) {
  const uint64_t hash = Fnv1a(name);
  return static_cast<uint32_t>((hash >> 32 ^ hash) % kHelloGroup);
}

bool CanReduce(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI32 ||
         dtype == DType::kI64;
}

}  // namespace

absl::StatusOr<Group> MakeGroup(const CommunicatorOptions& options, int64_t rank,
                                uint64_t identity) {
  const auto me = std::ranges::find(options.ranks, rank);
  if (me == options.ranks.end())
    return InvalidArgument("rank {} is not in group {} of {}", rank, options.name,
                           NameRanks(options.ranks));
  std::vector<int64_t> sorted = options.ranks;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end() || sorted.front() < 0 ||
      sorted.back() > kMaxRank)
    return InvalidArgument("group {} of {}: ranks are distinct and from 0 to {}", options.name,
                           NameRanks(options.ranks), kMaxRank);
  return Group{.name = options.name,
               .ranks = options.ranks,
               .me = static_cast<int>(me - options.ranks.begin()),
               .id = GroupId(options.name),
               .identity = identity};
}

LinkCommunicator::LinkCommunicator(Group group, absl::Duration timeout, Link& link,
                                   ProgressLoop& loop)
    : loop_(loop), queue_(std::move(group), link, timeout, loop.waiters()) {
  loop_.Run([this] {
    queue_.Open();
    loop_.Add(&queue_);
  });
}

LinkCommunicator::~LinkCommunicator() {
  loop_.Run([this] {
    loop_.Remove(&queue_);
    queue_.Close();
  });
}

Work LinkCommunicator::Issue(const OperationSpec& spec, Stream& stream) {
  stream.Synchronize();
  Work work = queue_.Issue(spec);
  loop_.Wake();
  return work;
}

Work LinkCommunicator::AllReduce(TensorView io, ReduceOp op, Stream& stream) {
  MEGA_CHECK(CanReduce(io.dtype()));
  return Issue({.kind = OperationKind::kAllReduce, .reduce = op, .in = io, .out = io}, stream);
}

Work LinkCommunicator::ReduceScatter(TensorView in, TensorView out, ReduceOp op, Stream& stream) {
  MEGA_CHECK(CanReduce(in.dtype()) && in.dtype() == out.dtype());
  MEGA_CHECK_EQ(in.elements(), out.elements() * size());
  return Issue({.kind = OperationKind::kReduceScatter, .reduce = op, .in = in, .out = out}, stream);
}

Work LinkCommunicator::AllGather(TensorView in, TensorView out, Stream& stream) {
  MEGA_CHECK(in.dtype() == out.dtype());
  MEGA_CHECK_EQ(in.elements() * size(), out.elements());
  return Issue({.kind = OperationKind::kAllGather, .in = in, .out = out}, stream);
}

Work LinkCommunicator::AllToAll(TensorView in, TensorView out, Stream& stream) {
  MEGA_CHECK(in.dtype() == out.dtype());
  MEGA_CHECK_EQ(in.elements(), out.elements());
  MEGA_CHECK_EQ(in.elements() % size(), 0);
  return Issue({.kind = OperationKind::kAllToAll, .in = in, .out = out}, stream);
}

Work LinkCommunicator::Broadcast(TensorView io, int root, Stream& stream) {
  MEGA_CHECK(root >= 0 && root < size());
  return Issue({.kind = OperationKind::kBroadcast, .in = io, .out = io, .peer = root}, stream);
}

Work LinkCommunicator::Send(TensorView in, int to, Stream& stream) {
  MEGA_CHECK(to >= 0 && to < size() && to != rank());
  return Issue({.kind = OperationKind::kSend, .in = in, .peer = to}, stream);
}

Work LinkCommunicator::Recv(TensorView out, int from, Stream& stream) {
  MEGA_CHECK(from >= 0 && from < size() && from != rank());
  return Issue({.kind = OperationKind::kRecv, .out = out, .peer = from}, stream);
}

Work LinkCommunicator::Barrier(Stream& stream) {
  return Issue({.kind = OperationKind::kBarrier}, stream);
}

void LinkCommunicator::Abort(absl::Status why) {
  queue_.Abort(std::move(why));
  loop_.Wake();
}

}  // namespace mega::distributed
