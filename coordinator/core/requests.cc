#include "coordinator/core/requests.h"

#include "absl/status/status.h"
#include "coordinator/core/jobs/pause.h"
#include "coordinator/core/jobs/registry.h"
#include "coordinator/core/jobs/restart.h"
#include "coordinator/core/nodes/cordon.h"
#include "coordinator/core/queue/quota.h"
#include "coordinator/core/recovery/resize.h"

namespace mega::core {

void OnRequest(Draft& draft, const v1::CoreRequest& request) {
  switch (request.kind_case()) {
    case v1::CoreRequest::kPauseJob:
      return PauseJob(draft, request);
    case v1::CoreRequest::kResumeJob:
      return ResumeJob(draft, request);
    case v1::CoreRequest::kRestartJob:
      return RestartJob(draft, request);
    case v1::CoreRequest::kScaleJob:
      return ScaleJob(draft, request);
    case v1::CoreRequest::kSaveCheckpoint:
      return SaveCheckpoint(draft, request);
    case v1::CoreRequest::kPinCheckpoint:
      return PinCheckpoint(draft, request);
    case v1::CoreRequest::kDeleteCheckpoint:
      return DeleteCheckpoint(draft, request);
    case v1::CoreRequest::kCordonNode:
      return CordonNode(draft, request);
    case v1::CoreRequest::kUncordonNode:
      return UncordonNode(draft, request);
    case v1::CoreRequest::kDrainNode:
      return DrainNode(draft, request);
    case v1::CoreRequest::kUpdateNamespace:
      return UpdateNamespace(draft, request);
    case v1::CoreRequest::kDeleteNamespace:
      return DeleteNamespace(draft, request);
    default:
      return draft.ReplyError(request.call(), absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED",
                              "this coordinator cannot do that yet");
  }
}

}  // namespace mega::core
