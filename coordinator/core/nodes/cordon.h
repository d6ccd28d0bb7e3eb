// Nodes that get nothing new. Cordoned: what runs there goes on. Draining: cordoned, and every
// attempt with ranks there yields, so that its job goes on elsewhere. Both are durable and outlive
// the node's worker, its reboots and the coordinator.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

// Answer their call. What is so already changes nothing. A reason has at most 512 bytes.
void CordonNode(Draft& draft, const v1::CoreRequest& request);
void UncordonNode(Draft& draft, const v1::CoreRequest& request);
void DrainNode(Draft& draft, const v1::CoreRequest& request);

// What of a node's record is the coordinator's own and survives its hello, whatever that says.
void KeepOwn(const v1::Node* known, v1::Node& said);

}  // namespace mega::core
