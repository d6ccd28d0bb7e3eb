// Leases from the coordinator's side: what is renewed, who is suspect, and from when on the ranks
// of a silent node are certainly dead. The worker's side is worker/daemon/lease.
#pragma once

#include "coordinator/core/draft.h"

namespace mega::core {

void OnStarted(Draft& draft, const v1::CoreStarted& started);
void OnTick(Draft& draft);
void OnHeartbeat(Draft& draft, const NodeId& node, const v1::Heartbeat& heartbeat);
void OnCommandAck(Draft& draft, const NodeId& node, int64_t seq);
void OnGoodbye(Draft& draft, const NodeId& node, const v1::Goodbye& goodbye);
void OnSessionClosed(Draft& draft, const v1::CoreSessionClosed& closed);

// What every renewal says, without the witnesses.
void FillLease(const Draft& draft, int64_t seq, int64_t session, v1::Lease* lease);
// Answers heartbeat `seq`, which a hello may have brought, and counts the node's horizon from now.
void Renew(Draft& draft, const NodeId& node, int64_t seq, bool is_hello = false);
// A rank that ran unasked has ended; its device may be given away when all of them have.
void ForgetUnwanted(Draft& draft, const NodeId& node, const v1::RankRef& rank);

}  // namespace mega::core
