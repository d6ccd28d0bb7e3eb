#include "worker/engine/main/state_slices.h"

namespace mega::engine {
namespace {

checkpoint::NamedSlice SliceOf(const std::string& name, const distributed::Parameter& parameter,
                               TensorView view) {
  return {.name = name,
          .global_shape = parameter.info.sharding.global_shape,
          .offset = parameter.offset,
          .view = view};
}

}  // namespace

std::vector<checkpoint::NamedSlice> WeightSlices(const models::Decoder& model) {
  std::vector<checkpoint::NamedSlice> slices;
  for (const distributed::Parameter* parameter : model.parameters()) {
    slices.push_back(SliceOf(parameter->info.name, *parameter, parameter->value));
  }
  return slices;
}

std::vector<checkpoint::NamedSlice> StateSlices(const models::Decoder& model,
                                                const optimizer::AdamW& optimizer) {
  std::vector<checkpoint::NamedSlice> slices = WeightSlices(model);
  for (const optimizer::NamedState& state : optimizer.states()) {
    slices.push_back(SliceOf(state.name, *state.parameter, state.value));
  }
  return slices;
}

}  // namespace mega::engine
