// Stands in for UCX in builds without it.
#include "worker/engine/distributed/ucx.h"

namespace mega::distributed {

class UcxConnections {};

UcxTransport::UcxTransport(const v1::RankRef& self) : self_(self), loop_("mega-ucx") {}
UcxTransport::~UcxTransport() = default;

absl::StatusOr<std::unique_ptr<UcxTransport>> UcxTransport::Create(const v1::RankRef&, bool) {
  return FailedPrecondition(
      "this build has no UCX, which ranks in processes of their own talk over; configure with "
      "-DMEGA_UCX=ON and libucx-dev installed");
}

absl::Status UcxTransport::Connect(const google::protobuf::RepeatedPtrField<v1::RankAddress>&,
                                   absl::Duration) {
  return FailedPrecondition("this build has no UCX");
}

absl::StatusOr<std::unique_ptr<Communicator>> UcxTransport::MakeCommunicator(
    const CommunicatorOptions&) {
  return FailedPrecondition("this build has no UCX");
}

}  // namespace mega::distributed
