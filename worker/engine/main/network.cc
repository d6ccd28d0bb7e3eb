#include "worker/engine/main/network.h"

#include <algorithm>

#include "base/listen_address.h"
#include "worker/engine/main/progress.h"

namespace mega::engine {
namespace {

// A rank that waits says so this often.
constexpr absl::Duration kReportEvery = absl::Seconds(1);
// How far apart the ranks of a job may be in loading, unless health.hang.first_step_timeout says.
constexpr absl::Duration kLoadTimeout = absl::Hours(1);

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

bool OnOneNode(const v1::Plan& plan) {
  return std::ranges::all_of(plan.ranks(), [&plan](const v1::RankPlacement& rank) {
    return rank.node() == plan.ranks(0).node();
  });
}

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
  const v1::HangRule& hang = start.spec().health().hang();
  network->collective_timeout_ = FromProto(hang.collective_timeout());
  network->load_timeout_ =
      std::max(network->collective_timeout_,
               hang.has_first_step_timeout() ? FromProto(hang.first_step_timeout()) : kLoadTimeout);
  MEGA_ASSIGN_OR_RETURN(network->groups_, distributed::MakeGroups(mesh, start.rank().rank(),
                                                                  network->transport_.get(),
                                                                  network->collective_timeout_));
  return network;
}

absl::Status Network::AwaitAll(Stream& stream) {
  if (!groups_.data) return absl::OkStatus();
  groups_.data->set_timeout(load_timeout_);
  const absl::Status arrived = groups_.data->Barrier(stream).Wait();
  groups_.data->set_timeout(collective_timeout_);
  return Annotate(arrived, "while the other ranks load");
}

void Network::Abort(const absl::Status& why) {
  if (groups_.data) groups_.data->Abort(why);
}

}  // namespace mega::engine
