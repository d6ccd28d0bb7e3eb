// Runs `body` as every rank of a world of `n`, each in a thread of its own with a communicator
// "data" over all, on the named transport ("inproc" or "ucx").
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "worker/engine/distributed/inproc.h"

namespace mega::distributed {

// The transports of one world, by rank.
class World {
 public:
  static std::unique_ptr<World> Make(const std::string& backend, int64_t n);
  virtual ~World() = default;
  virtual Transport& transport(int64_t rank) = 0;
};

inline CommunicatorOptions Everybody(int64_t n, absl::Duration timeout = absl::Seconds(60)) {
  CommunicatorOptions options{.name = "data", .timeout = timeout};
  for (int64_t rank = 0; rank < n; ++rank) options.ranks.push_back(rank);
  return options;
}

inline void InThreads(int64_t n, const std::function<void(int64_t)>& body) {
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < n; ++rank) threads.emplace_back([&body, rank] { body(rank); });
}

inline void RunRanks(const std::string& backend, int64_t n,
                     const std::function<void(Communicator&)>& body,
                     absl::Duration timeout = absl::Seconds(60)) {
  const std::unique_ptr<World> world = World::Make(backend, n);
  InThreads(n, [&](int64_t rank) {
    auto made = world->transport(rank).MakeCommunicator(Everybody(n, timeout));
    MEGA_CHECK_OK(made);
    body(**made);
  });
}

}  // namespace mega::distributed
