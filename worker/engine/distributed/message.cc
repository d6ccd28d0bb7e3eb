#include "worker/engine/distributed/message.h"

#include "fmt/ranges.h"

namespace mega::distributed {

std::string_view NameOf(OperationKind kind) {
  switch (kind) {
    case OperationKind::kAllReduce:
      return "all_reduce";
    case OperationKind::kReduceScatter:
      return "reduce_scatter";
    case OperationKind::kAllGather:
      return "all_gather";
    case OperationKind::kAllToAll:
      return "all_to_all";
    case OperationKind::kBroadcast:
      return "broadcast";
    case OperationKind::kBarrier:
      return "barrier";
    case OperationKind::kSend:
      return "send";
    case OperationKind::kRecv:
      return "recv";
  }
  return "unknown operation";
}

std::string_view NameOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kMin:
      return "min";
  }
  return "unknown reduction";
}

std::string Describe(const OperationHeader& header) {
  std::string text = fmt::format("{} #{}", NameOf(header.kind), header.sequence);
  if (header.kind == OperationKind::kBarrier) return text;
  text += " (";
  if (header.kind == OperationKind::kAllReduce || header.kind == OperationKind::kReduceScatter)
    text += fmt::format("{}, ", NameOf(static_cast<ReduceOp>(header.reduce)));
  if (header.kind == OperationKind::kBroadcast) text += fmt::format("root {}, ", header.root);
  text += fmt::format("{} bytes of {})", header.bytes,
                      kernels::NameOf(static_cast<DType>(header.dtype)));
  return text;
}

std::string NameRanks(const std::vector<int64_t>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

}  // namespace mega::distributed
