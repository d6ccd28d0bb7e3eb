// Which decoder layers a pipeline stage holds.
#pragma once

#include <cstdint>
#include <vector>

namespace mega::planner {

struct LayerRange {
  int64_t first = 0;
  int64_t count = 0;
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

// Layers of chunk `chunk` (0 … virtual_stages−1) of pipeline rank `stage`. Chunks are dealt out in
// the order chunk 0 of every stage, chunk 1 of every stage, …: an interleaved pipeline passes
// through all ranks once per chunk. When layers do not divide, the middle chunks hold the extra
// ones, since the first also holds the embedding and the last the loss.
LayerRange LayersOf(int64_t num_layers, int64_t stages, int64_t virtual_stages, int64_t stage,
                    int64_t chunk);

}  // namespace mega::planner
