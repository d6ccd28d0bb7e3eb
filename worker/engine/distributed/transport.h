// What communicators are made on: the connections of this rank to its peers.
#pragma once

#include <memory>

#include "worker/engine/distributed/communicator.h"

namespace mega::distributed {

class Transport {
 public:
  virtual ~Transport() = default;  // outlives its communicators
  virtual int64_t rank() const = 0;
  // options.ranks contains rank(). INVALID_ARGUMENT when the name clashes with one made before.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> MakeCommunicator(
      const CommunicatorOptions& options) = 0;
};

}  // namespace mega::distributed
