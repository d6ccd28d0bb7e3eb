// How an attempt learns which checkpoints its job keeps: before its ranks are connected, the
// coordinator tells their nodes the newest kMostTold as commits, in the order of their steps. The
// last one is what the attempt starts from, and ends the list. Of a full list nothing follows for
// steps before its first.
#pragma once

#include <cstddef>

namespace mega::manifest {

// A node of a job that keeps hundreds needs no more to find what was left beside the newest.
inline constexpr size_t kMostTold = 64;

}  // namespace mega::manifest
