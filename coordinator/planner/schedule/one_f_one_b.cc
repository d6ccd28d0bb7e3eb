#include "coordinator/planner/schedule/one_f_one_b.h"

#include <algorithm>

namespace mega::planner {

std::vector<Action> OneForwardOneBackward(int64_t stages, int64_t stage, int64_t micro_batches) {
  const bool first = stage == 0, last = stage == stages - 1;
  std::vector<Action> actions;
  const auto forward = [&](int64_t m) {
    if (!first) actions.push_back({Action::Kind::kRecvForward, m});
    actions.push_back({Action::Kind::kForward, m});
    if (!last) actions.push_back({Action::Kind::kSendForward, m});
  };
  const auto backward = [&](int64_t m) {
    if (!last) actions.push_back({Action::Kind::kRecvBackward, m});
    actions.push_back({Action::Kind::kBackwardInput, m});
    // Before the weights' gradients: the stage above is waiting for it.
    if (!first) actions.push_back({Action::Kind::kSendBackward, m});
    actions.push_back({Action::Kind::kBackwardWeight, m});
  };

  const int64_t warm_up = std::min(stages - stage - 1, micro_batches);
  for (int64_t m = 0; m < warm_up; ++m) forward(m);
  for (int64_t m = warm_up; m < micro_batches; ++m) {
    forward(m);
    backward(m - warm_up);
  }
  for (int64_t m = micro_batches - warm_up; m < micro_batches; ++m) backward(m);
  actions.push_back({Action::Kind::kReduceGrads});
  actions.push_back({Action::Kind::kStep});
  return actions;
}

}  // namespace mega::planner
