// A worker comes, or comes back.
#pragma once

#include <string>

#include "coordinator/core/draft.h"

namespace mega::core {

// For the worker, with the rule; empty: nothing. Such a node is refused for ever.
std::string WhatIsWrongWithNodeName(const NodeId& id);

// A hello of the same state folder proves which ranks run on the node: those it names. Everything
// else that was placed there is dead (its device is free at once), or was never started. Ranks that
// run there without being wanted are told to stop. Pending commands are sent again, in order.
void OnHello(Draft& draft, const NodeId& id, int64_t session, const v1::Hello& hello);

}  // namespace mega::core
