// What is held against a node: what its worker's probes say, and what the coordinator has seen of
// it. One finding a check; an ERROR keeps new ranks away until it is gone.
#pragma once

#include <string>
#include <string_view>

#include "coordinator/core/draft.h"

namespace mega::core {

// All that the worker's probes hold against it now. Bounded: a worker may be wrong about itself.
void SetProbeFindings(Draft& draft, const NodeId& node,
                      const google::protobuf::RepeatedPtrField<v1::Finding>& findings);
// The coordinator's own, in place of an earlier one of the same check. Forgotten when another
// worker process takes the node over, as what was done there may have mended it.
void AddOwnFinding(Draft& draft, const NodeId& node, std::string_view check, v1::Severity severity,
                   std::string_view message);
// What a hello leaves of them.
void KeepOwnFindings(const v1::Node* known, v1::Node& said);

bool HasError(const v1::Node& node);

}  // namespace mega::core
