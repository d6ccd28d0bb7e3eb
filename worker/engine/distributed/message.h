// What goes over a Link: how messages are told apart, and what each rank says when it enters an
// operation. Little-endian, as every machine we run on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/engine/distributed/communicator.h"

namespace mega::distributed {

enum class Channel : uint8_t {
  kHeader,      // entering a collective
  kData,        // parts of the input
  kResult,      // reduced parts
  kPeerHeader,  // the same for Send and Recv, which only two ranks enter
  kPeerData,
  kAbort,  // why the communicator ended
};

// The sender is in the tag: a receive names whom it waits for.
//   group 12 bits · sender 20 · channel 3 · sequence 13 · index 16
inline uint64_t MakeTag(uint32_t group, int64_t sender, Channel channel, int64_t sequence,
                        int64_t index) {
  return static_cast<uint64_t>(group & 0xfff) << 52 |
         static_cast<uint64_t>(sender & 0xfffff) << 32 | static_cast<uint64_t>(channel) << 29 |
         static_cast<uint64_t>(sequence & 0x1fff) << 16 | static_cast<uint64_t>(index & 0xffff);
}
inline constexpr int64_t kMaxRank = 0xfffff;
inline constexpr uint32_t kHelloGroup = 0xfff;  // no communicator has it

enum class OperationKind : uint32_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kBarrier,
  kSend,
  kRecv,
};

// Sent to every peer by each rank that enters an operation. All must agree.
struct OperationHeader {
  uint64_t identity = 0;  // of job, attempt and epoch
  int64_t sequence = 0;
  OperationKind kind = OperationKind::kBarrier;
  uint32_t reduce = 0;
  uint32_t dtype = 0;
  int32_t root = -1;
  int64_t bytes = 0;  // of the larger of input and output
  friend bool operator==(const OperationHeader&, const OperationHeader&) = default;
};
static_assert(sizeof(OperationHeader) == 40);

std::string_view NameOf(OperationKind kind);
std::string_view NameOf(ReduceOp op);
// "all_reduce #7 (sum, 4096 bytes of F32)"
std::string Describe(const OperationHeader& header);

// One communicator's group, as its loop side knows it.
struct Group {
  std::string name;
  std::vector<int64_t> ranks;  // world ranks, in order
  int me = 0;                  // index in ranks
  uint32_t id = 0;             // in tags
  uint64_t identity = 0;
  int size() const { return static_cast<int>(ranks.size()); }
};
// "rank 3", "ranks 3, 5"
std::string NameRanks(const std::vector<int64_t>& ranks);

}  // namespace mega::distributed
