// Nodes that get nothing new. Cordoned: what runs there goes on. Draining: cordoned, and every
// attempt with ranks there yields, so that its job goes on elsewhere. Both are durable and outlive
// the node's worker, its reboots and the coordinator.
#pragma once

#include <string>

#include "coordinator/core/draft.h"

namespace mega::core {

// Answer their call. What is so already changes nothing.
void CordonNode(Draft& draft, const v1::CoreRequest& request);
void UncordonNode(Draft& draft, const v1::CoreRequest& request);
void DrainNode(Draft& draft, const v1::CoreRequest& request);

// The same for the coordinator's own reasons. `cause`: operator, health, lemon. An operator's
// cordon is not replaced by another.
void Cordon(Draft& draft, const NodeId& node, const std::string& cause, const std::string& reason);

// What of a node's record is the coordinator's own and survives its hello, whatever that says.
void KeepOwn(const v1::Node* known, v1::Node& said);

}  // namespace mega::core
