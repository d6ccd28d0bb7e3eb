#include "base/version.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/unary.h"

namespace mega::service {

grpc::ServerUnaryReactor* GetVersion(const Shell& shell, Context* context,
                                     v1::GetVersionResponse& response) {
  response.set_version(kVersion);
  response.set_revision(shell.reads.revision());
  return Done(context, grpc::Status::OK);
}

}  // namespace mega::service
