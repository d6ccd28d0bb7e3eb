// The tensors of a training state, weights and optimizer, as checkpoint slices.
#pragma once

#include <vector>

#include "worker/engine/checkpoint/named_slice.h"
#include "worker/engine/models/decoder.h"
#include "worker/engine/optimizer/adamw.h"

namespace mega::engine {

std::vector<checkpoint::NamedSlice> WeightSlices(const models::Decoder& model);
// Weights first, then both moments.
std::vector<checkpoint::NamedSlice> StateSlices(const models::Decoder& model,
                                                const optimizer::AdamW& optimizer);

}  // namespace mega::engine
