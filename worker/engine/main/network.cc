#include "worker/engine/main/network.h"

#include <algorithm>

#include "base/listen_address.h"
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
  // A worker that listens on loopback has its peers, if any, on this machine.
  const bool by_worker =
      !OnOneNode(start.plan()) && ListenAddress{start.listen_host()}.is_loopback();
  if (mesh.world_size() > 1) {
    MEGA_ASSIGN_OR_RETURN(
        network->transport_,
        distributed::UcxTransport::Create(start.rank(), by_worker || OnOneNode(start.plan())));
    ready.mutable_ready()->set_address(network->transport_->address());
  }
  link.Send(std::move(ready));
  // Alone too: the coordinator connects an attempt when all its ranks are ready.
  MEGA_ASSIGN_OR_RETURN(const v1::Connect connect, WaitForPeers(link));
  if (network->transport_) {
    const absl::Status connected = network->transport_->Connect(connect.addresses());
    if (!connected.ok() && by_worker) {
      return Annotate(connected,
                      fmt::format("the ranks of this node listen on {} alone, as its worker does; "
                                  "where nodes are different machines, start each mega-worker with "
                                  "--listen and an address that the others reach",
                                  start.listen_host()));
    }
    MEGA_RETURN_IF_ERROR(connected);
  }
  MEGA_ASSIGN_OR_RETURN(
      network->groups_,
      distributed::MakeGroups(mesh, start.rank().rank(), network->transport_.get(),
                              FromProto(start.spec().health().hang().collective_timeout())));
  return network;
}

}  // namespace mega::engine
