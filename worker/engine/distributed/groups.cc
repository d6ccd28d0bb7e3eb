#include "worker/engine/distributed/groups.h"

#include "base/check.h"

namespace mega::distributed {
namespace {

absl::StatusOr<std::unique_ptr<Communicator>> MakeOne(std::string name, std::vector<int64_t> ranks,
                                                      Transport* transport,
                                                      absl::Duration timeout) {
  if (ranks.size() == 1) return nullptr;
  MEGA_CHECK(transport != nullptr);
  return transport->MakeCommunicator(
      {.name = std::move(name), .ranks = std::move(ranks), .timeout = timeout});
}

}  // namespace

absl::StatusOr<Groups> MakeGroups(const planner::RankMesh& mesh, int64_t rank, Transport* transport,
                                  absl::Duration timeout) {
  Groups groups;
  MEGA_ASSIGN_OR_RETURN(
      groups.data, MakeOne("data", mesh.GroupOf(rank, {planner::Axis::kData}), transport, timeout));
  return groups;
}

}  // namespace mega::distributed
