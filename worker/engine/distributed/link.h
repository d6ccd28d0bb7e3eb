// Point-to-point messages between the ranks of one transport, as the progress loop sees them. All
// collectives are made of these, so every transport adds in the same order and gives the same bits.
// Only the thread of the transport's loop calls a Link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace mega::distributed {

// A message in flight. While `active`, the link holds the buffer and this struct.
struct Transfer {
  bool active = false;
  int64_t bytes = 0;  // received
  absl::Status status;
  void* request = nullptr;  // the link's own
};

class Link {
 public:
  virtual ~Link() = default;

  // Messages of one sender and tag arrive in the order sent. A receive smaller than its message
  // fails. Ranks are world ranks.
  virtual void Send(int64_t to, uint64_t tag, std::span<const std::byte> bytes,
                    Transfer& transfer) = 0;
  virtual void Recv(int64_t from, uint64_t tag, std::span<std::byte> bytes, Transfer& transfer) = 0;
  virtual bool Progress() = 0;  // true when anything moved
  // Asks for an early end; `active` falls when it has come.
  virtual void Cancel(Transfer& transfer) = 0;
  // Cancel was not enough: drops the connections to `ranks`, which ends their transfers.
  virtual void Disconnect(std::span<const int64_t> ranks) = 0;
  // Not OK when the rank is lost, with the reason. What had arrived before can still be received.
  virtual absl::Status PeerStatus(int64_t rank) const = 0;
};

}  // namespace mega::distributed
