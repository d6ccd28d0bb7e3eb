// The largest gRPC message between our processes: plans and manifests of large jobs. Every sender
// and receiver takes the same, for a message that one side refuses is sent again and again.
#pragma once

namespace mega {

inline constexpr int kMostMessageBytes = 64 << 20;

}  // namespace mega
