// Witnesses from the coordinator's side. A node that cannot reach the coordinator asks the workers
// of its set; when a majority of them has no session either, its ranks run on. So a silent node's
// ranks are certainly dead only if a majority of every set that it may hold could not have said so.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "coordinator/core/draft.h"

namespace mega::core {

void OnRenewalAck(Draft& draft, const NodeId& node, int64_t heartbeat_seq);
void OnWitnessSetAck(Draft& draft, const NodeId& node, int64_t number);
// `via` carries a heartbeat of a node that cannot reach us, and the answer back.
void OnRelayedHeartbeat(Draft& draft, const NodeId& via, const v1::RelayedHeartbeat& relayed);

// A renewal leaves now; its ack proves that the node has had it.
void NoteRenewal(Draft& draft, const NodeId& node, int64_t heartbeat_seq);
// At each tick: sets for nodes that have none, replacements for witnesses that have left.
void AssignWitnesses(Draft& draft);
// The newest set, once it is durable and until it is acked.
void SendWitnesses(Draft& draft, const NodeId& node);

// Since when (on the core's clock) a majority of every set that the node may hold can have vouched
// for no outage, without a gap; never in the past of this coordinator's start. Zero when the node
// holds no set: then its ranks end with the lease. None: no such majority.
std::optional<absl::Duration> InSessionSince(const Draft& draft, const v1::Node& node);

}  // namespace mega::core
