// Who writes what when several ranks hold the same values: each byte by exactly one of them, about
// equal shares, the same answer on every rank. Pure.
#pragma once

#include <span>
#include <vector>

#include "worker/engine/checkpoint/named_slice.h"

namespace mega::checkpoint {

// The part of `all` (equal on all members, in the same order) that `member` of `members` writes.
// Large tensors are cut between rows; views are windows of the originals.
std::vector<NamedSlice> ShareOf(std::span<const NamedSlice> all, int64_t member, int64_t members);

}  // namespace mega::checkpoint
