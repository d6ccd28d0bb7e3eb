// Ranks as threads of one process, for tests: the algorithms, order of sums, errors and deadlines
// of the real transports, without processes. One loop moves the messages of all ranks.
//   InprocHub hub(4);
//   std::unique_ptr<Communicator> data = hub.Make(rank, {.name = "data", .ranks = {0, 1, 2, 3}});
// The hub outlives its communicators. Make may be called from any thread.
#pragma once

#include <memory>
#include <vector>

#include "worker/engine/distributed/progress_loop.h"
#include "worker/engine/distributed/transport.h"

namespace mega::distributed {

class InprocHub {
 public:
  explicit InprocHub(int64_t world_size);
  ~InprocHub();
  InprocHub(const InprocHub&) = delete;

  std::unique_ptr<Communicator> Make(int64_t rank, const CommunicatorOptions& options);
  // What rank `rank` makes its communicators on; the hub's.
  Transport& transport(int64_t rank);
  // As if the process of `rank` had died: its peers' operations end with an error that names it.
  void Kill(int64_t rank);

 private:
  class Exchange;
  class RankLink;
  std::unique_ptr<Exchange> exchange_;
  std::vector<std::unique_ptr<RankLink>> links_;
  ProgressLoop loop_;
};

}  // namespace mega::distributed
