#include "worker/engine/main/network.h"

#include <algorithm>

#include "worker/engine/main/progress.h"

namespace mega::engine {
namespace {

// A rank that waits says so this often.
constexpr absl::Duration kReportEvery = absl::Seconds(1);

bool OnOneNode(const v1::Plan& plan) {
  return std::ranges::all_of(plan.ranks(), [&plan](const v1::RankPlacement& rank) {
    return rank.node() == plan.ranks(0).node();
  });
}

absl::StatusOr<v1::Connect> WaitForPeers(TrainerLink& link) {
  while (true) {
    absl::StatusOr<v1::Connect> connect = link.WaitForConnect(kReportEvery);
    if (connect.ok() || !absl::IsDeadlineExceeded(connect.status())) return connect;
    if (link.StopRequested()) {
      return absl::CancelledError(
          "the worker asked the rank to stop while it waited for its peers");
    }
    SendProgress(link, "connecting", 0);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Network>> Network::Connect(const v1::StartTraining& start,
                                                          const planner::RankMesh& mesh,
                                                          TrainerLink& link) {
  auto network = std::make_unique<Network>();
  v1::EngineMessage ready;
  *ready.mutable_ready()->mutable_rank() = start.rank();
  if (mesh.world_size() > 1) {
    MEGA_ASSIGN_OR_RETURN(network->transport_,
                          distributed::UcxTransport::Create(start.rank(), OnOneNode(start.plan())));
    ready.mutable_ready()->set_address(network->transport_->address());
  }
  link.Send(std::move(ready));
  // Alone too: the coordinator connects an attempt when all its ranks are ready.
  MEGA_ASSIGN_OR_RETURN(const v1::Connect connect, WaitForPeers(link));
  if (network->transport_) {
    MEGA_RETURN_IF_ERROR(network->transport_->Connect(connect.addresses()));
  }
  MEGA_ASSIGN_OR_RETURN(
      network->groups_,
      distributed::MakeGroups(mesh, start.rank().rank(), network->transport_.get(),
                              FromProto(start.spec().health().hang().collective_timeout())));
  return network;
}

}  // namespace mega::engine
