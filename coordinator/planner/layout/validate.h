// Whether a model can be cut as a layout says.
#pragma once

#include <string>
#include <vector>

#include "coordinator/planner/model/model_spec.h"
#include "mega/v1/plan.pb.h"

namespace mega::planner {

// Every size that does not divide, one sentence each, by job key and with the choices that would:
//   heads, ffn by tp · query groups by tp or the other way round · layers by pp × vpp
//   seq_length by 2·cp (zig-zag halves) · sequence_parallel wants tp > 1 and seq_length by tp
std::vector<std::string> LayoutViolations(const ModelSpec& model, const v1::Layout& layout,
                                          int64_t seq_length);

}  // namespace mega::planner
