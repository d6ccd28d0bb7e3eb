#include "coordinator/core/requests.h"

#include "absl/status/status.h"

namespace mega::core {

void OnRequest(Draft& draft, const v1::CoreRequest& request) {
  switch (request.kind_case()) {
    default:
      return draft.ReplyError(request.call(), static_cast<int>(absl::StatusCode::kUnimplemented),
                              "NOT_IMPLEMENTED", "this coordinator cannot do that yet");
  }
}

}  // namespace mega::core
