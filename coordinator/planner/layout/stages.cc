#include "coordinator/planner/layout/stages.h"

#include <algorithm>

#include "base/check.h"

namespace mega::planner {

LayerRange LayersOf(int64_t num_layers, int64_t stages, int64_t virtual_stages, int64_t stage,
                    int64_t chunk) {
  MEGA_CHECK(num_layers >= 0 && stages >= 1 && virtual_stages >= 1);
  MEGA_CHECK(stage >= 0 && stage < stages && chunk >= 0 && chunk < virtual_stages);
  const int64_t chunks = stages * virtual_stages;
  const int64_t index = chunk * stages + stage;
  const int64_t base = num_layers / chunks, extra = num_layers % chunks;
  // The chunks first_extra … first_extra + extra − 1, in the middle, hold one more.
  const int64_t first_extra = (chunks - extra) / 2;
  const int64_t extras_before = std::clamp<int64_t>(index - first_extra, 0, extra);
  const bool has_extra = index >= first_extra && index < first_extra + extra;
  return {.first = index * base + extras_before, .count = base + (has_extra ? 1 : 0)};
}

}  // namespace mega::planner
