#include "coordinator/planner/schedule/schedule.h"

#include "coordinator/planner/schedule/one_f_one_b.h"

namespace mega::planner {
namespace {

// A bound on what a hostile plan can make us allocate; far above any real step.
constexpr int64_t kMostMicroBatches = int64_t{1} << 24;

std::vector<Action> ForwardOnly(int64_t stages, int64_t stage, int64_t micro_batches) {
  std::vector<Action> actions;
  for (int64_t m = 0; m < micro_batches; ++m) {
    if (stage > 0) actions.push_back({Action::Kind::kRecvForward, m});
    actions.push_back({Action::Kind::kForward, m});
    if (stage < stages - 1) actions.push_back({Action::Kind::kSendForward, m});
  }
  return actions;
}

}  // namespace

std::string ToString(const Action& action) {
  const auto numbered = [&action](const char* name) {
    return action.chunk == 0 ? fmt::format("{}{}", name, action.micro_batch)
                             : fmt::format("{}{}.{}", name, action.micro_batch, action.chunk);
  };
  switch (action.kind) {
    case Action::Kind::kForward:
      return numbered("F");
    case Action::Kind::kBackwardInput:
      return numbered("B");
    case Action::Kind::kBackwardWeight:
      return numbered("W");
    case Action::Kind::kSendForward:
      return numbered("SendF");
    case Action::Kind::kRecvForward:
      return numbered("RecvF");
    case Action::Kind::kSendBackward:
      return numbered("SendB");
    case Action::Kind::kRecvBackward:
      return numbered("RecvB");
    case Action::Kind::kReduceGrads:
      return "ReduceGrads";
    case Action::Kind::kStep:
      return "Step";
  }
  return "?";
}

absl::StatusOr<std::vector<Action>> MakeSchedule(const v1::ScheduleSpec& spec, int64_t stage,
                                                 int64_t micro_batches, bool forward_only) {
  if (spec.kind() != "1f1b")
    return InvalidArgument("schedule '{}' is not implemented; choose 1f1b", spec.kind());
  if (spec.virtual_stages() > 1)
    return InvalidArgument("schedule 1f1b has no virtual stages, but {} are asked for; choose 1",
                           spec.virtual_stages());
  if (spec.stages() < 1 || stage < 0 || stage >= spec.stages())
    return InvalidArgument("stage {} is not one of the {} stages of the schedule", stage,
                           spec.stages());
  if (micro_batches < 1 || micro_batches > kMostMicroBatches)
    return InvalidArgument("a step of {} micro-batches is asked for; choose 1 to {}", micro_batches,
                           kMostMicroBatches);
  if (forward_only) return ForwardOnly(spec.stages(), stage, micro_batches);
  return OneForwardOneBackward(spec.stages(), stage, micro_batches);
}

}  // namespace mega::planner
