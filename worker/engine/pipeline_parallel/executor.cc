#include "worker/engine/pipeline_parallel/executor.h"

#include <utility>

namespace mega::pipeline_parallel {

using planner::Action;
using profiler::Phase;
using transformer::MicroBatch;

Executor::Executor(transformer::Stage& stage, v1::ScheduleSpec schedule, int64_t stage_index,
                   StageTransport* transport, profiler::PhaseTimer& timer)
    : stage_(stage),
      schedule_(std::move(schedule)),
      stage_index_(stage_index),
      transport_(transport),
      timer_(timer) {}

absl::Status Executor::RunStep(std::span<const MicroBatch> batches, const StepActions& actions) {
  return Run(batches, /*forward_only=*/false, actions);
}

absl::Status Executor::RunForwardOnly(std::span<const MicroBatch> batches) {
  return Run(batches, /*forward_only=*/true, {});
}

absl::StatusOr<const std::vector<Action>*> Executor::Expand(int64_t micro_batches,
                                                            bool forward_only) {
  Expansion& expansion = forward_only ? evaluate_ : train_;
  if (expansion.micro_batches != micro_batches) {
    MEGA_ASSIGN_OR_RETURN(expansion.actions, planner::MakeSchedule(schedule_, stage_index_,
                                                                   micro_batches, forward_only));
    expansion.micro_batches = micro_batches;
    for (const Action& action : expansion.actions) {
      if (action.chunk != 0)
        return InvalidArgument("schedule {} has virtual stages; this executor runs one chunk",
                               schedule_.kind());
      const bool talks =
          action.kind == Action::Kind::kSendForward || action.kind == Action::Kind::kRecvForward ||
          action.kind == Action::Kind::kSendBackward || action.kind == Action::Kind::kRecvBackward;
      if (talks && transport_ == nullptr)
        return Internal("schedule {} exchanges tensors ({}) but this rank has no stage transport",
                        schedule_.kind(), planner::ToString(action));
    }
  }
  return &expansion.actions;
}

absl::Status Executor::Run(std::span<const MicroBatch> batches, bool forward_only,
                           const StepActions& actions) {
  const int64_t micro_batches = static_cast<int64_t>(batches.size());
  MEGA_ASSIGN_OR_RETURN(const std::vector<Action>* schedule, Expand(micro_batches, forward_only));

  transformer::StepMode mode{.forward_only = forward_only};
  for (const Action& action : *schedule)
    if (action.kind == Action::Kind::kBackwardWeight) mode.last_backward = action.micro_batch;
  forward_only_ = forward_only;
  forward_.clear();
  backward_.clear();
  forward_.resize(micro_batches);
  backward_.resize(micro_batches);
  stage_.BeginStep(mode);

  for (size_t i = 0; i < schedule->size(); ++i) {
    const Action& action = (*schedule)[i];
    // The two halves back to back need not be kept apart.
    const bool fused = action.kind == Action::Kind::kBackwardInput && i + 1 < schedule->size() &&
                       (*schedule)[i + 1] == Action{.kind = Action::Kind::kBackwardWeight,
                                                    .micro_batch = action.micro_batch,
                                                    .chunk = action.chunk};
    if (fused) {
      const auto time = timer_.In(Phase::kBackward);
      Tensor& gradient = InFlight(backward_, action.micro_batch);
      gradient = stage_.Backward(action.micro_batch, std::move(gradient));
      ++i;
      continue;
    }
    const MicroBatch batch = action.micro_batch >= 0 ? batches[action.micro_batch] : MicroBatch{};
    MEGA_RETURN_IF_ERROR(RunAction(action, batch, actions));
  }
  return absl::OkStatus();
}

Tensor& Executor::InFlight(std::vector<Tensor>& tensors, int64_t micro_batch) {
  MEGA_CHECK_GE(micro_batch, 0);
  MEGA_CHECK_LT(micro_batch, static_cast<int64_t>(tensors.size()));
  return tensors[micro_batch];
}

absl::Status Executor::RunAction(const Action& action, const MicroBatch& batch,
                                 const StepActions& actions) {
  const int64_t m = action.micro_batch;
  switch (action.kind) {
    case Action::Kind::kForward: {
      const auto time = timer_.In(forward_only_ ? Phase::kEvaluate : Phase::kForward);
      Tensor& hidden = InFlight(forward_, m);
      hidden = stage_.Forward(m, batch, std::move(hidden));
      return absl::OkStatus();
    }
    case Action::Kind::kBackwardInput: {
      const auto time = timer_.In(Phase::kBackward);
      Tensor& gradient = InFlight(backward_, m);
      gradient = stage_.BackwardInput(m, std::move(gradient));
      return absl::OkStatus();
    }
    case Action::Kind::kBackwardWeight: {
      const auto time = timer_.In(Phase::kBackward);
      stage_.BackwardWeight(m);
      return absl::OkStatus();
    }
    case Action::Kind::kSendForward:
      return transport_->SendForward(m, action.chunk, std::move(InFlight(forward_, m)));
    case Action::Kind::kRecvForward: {
      MEGA_ASSIGN_OR_RETURN(InFlight(forward_, m), transport_->RecvForward(m, action.chunk));
      return absl::OkStatus();
    }
    case Action::Kind::kSendBackward:
      return transport_->SendBackward(m, action.chunk, std::move(InFlight(backward_, m)));
    case Action::Kind::kRecvBackward: {
      MEGA_ASSIGN_OR_RETURN(InFlight(backward_, m), transport_->RecvBackward(m, action.chunk));
      return absl::OkStatus();
    }
    case Action::Kind::kReduceGrads: {
      const auto time = timer_.In(Phase::kReduceExposed);
      return actions.reduce_grads ? actions.reduce_grads() : absl::OkStatus();
    }
    case Action::Kind::kStep: {
      const auto time = timer_.In(Phase::kOptimizer);
      return actions.step ? actions.step() : absl::OkStatus();
    }
  }
  return Internal("schedule {} has an action of unknown kind {}", schedule_.kind(),
                  static_cast<int>(action.kind));
}

}  // namespace mega::pipeline_parallel
