// The layout grammar: a layout in one line, "tp=2,pp=2,schedule=1f1b". Its short names are those of
// metric labels and tables.
//   tp cp ep etp dp pp vpp   sizes ≥ 1         sp        0 or 1         mbs  micro-batch size
//   schedule 1f1b, gpipe, interleaved, zero_bubble           cp_kind  ring, all_gather, ulysses
//   sharding none, optimizer, gradients, full                recompute  none, selective, full
//   order    tp-cp-ep-dp-pp, tp-cp-ep-pp-dp
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "mega/v1/plan.pb.h"

namespace mega::planner {

struct LayoutLine {
  v1::Layout layout;
  std::string schedule = "1f1b";
};

// Unset: sizes 1, etp = tp, dp the smallest with which etp·ep·pp divides the world;
// micro_batch_size 0 (not said). Strict: an unknown or repeated name, a bad value or an empty item
// is INVALID_ARGUMENT with the nearest way out. Which features exist is not asked here.
absl::StatusOr<LayoutLine> ParseLayout(std::string_view line);

// The shortest line that reads back as the same; "dp=1" when everything is at its default.
std::string PrintLayout(const LayoutLine& layout);

}  // namespace mega::planner
