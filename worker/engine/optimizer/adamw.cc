#include "worker/engine/optimizer/adamw.h"

#include <cmath>

#include "kernels/adamw.h"
#include "worker/engine/optimizer/grad_clip.h"

namespace mega::optimizer {

using distributed::Parameter;

absl::StatusOr<AdamW> AdamW::Make(const v1::Optimizer& optimizer, int64_t total_steps,
                                  std::span<Parameter* const> parameters, Pool& pool,
                                  Stream& stream) {
  MEGA_ASSIGN_OR_RETURN(LrSchedule schedule, LrSchedule::Make(optimizer, total_steps));
  AdamW adamw(optimizer, schedule, stream);
  adamw.parameters_.assign(parameters.begin(), parameters.end());

  constexpr int64_t kAlignment = 16;  // every tensor starts on a cache line
  const auto padded = [](int64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; };
  int64_t elements = 0;
  for (const Parameter* parameter : parameters) elements += 2 * padded(parameter->value.elements());
  absl::StatusOr<Tensor> memory =
      pool.TryZeros(DType::kF32, Shape({elements}), Purpose::kOptimizer);
  if (!memory.ok()) return Annotate(memory.status(), "the moments of AdamW");
  adamw.memory_ = *std::move(memory);

  int64_t at = 0;
  const auto next = [&](const Shape& shape) {
    const TensorView view = adamw.memory_.view().Rows(at, shape.elements()).View(shape);
    at += padded(shape.elements());
    return view;
  };
  for (Parameter* parameter : parameters) {
    const Shape& shape = parameter->value.shape();
    const TensorView exp_avg = next(shape), exp_avg_sq = next(shape);
    adamw.moments_.push_back({parameter, exp_avg, exp_avg_sq});
  }
  return adamw;
}

absl::StatusOr<StepResult> AdamW::Step(int64_t step, double grad_scale) {
  const GradNorm grad = MeasureGradNorm(*stream_, parameters_, grad_scale);
  if (!std::isfinite(grad.norm))
    return DataLoss(
        "step {}: the gradient norm is {}; the first gradient that is not finite is that of {}; "
        "lower optimizer.lr or raise optimizer.warmup_steps, or look at the data of this step",
        step, grad.norm, grad.first_bad.empty() ? "none (overflow)" : grad.first_bad);

  const double lr = schedule_.At(step);
  kernels::AdamWOptions options{
      .lr = lr,
      .beta1 = options_.beta1(),
      .beta2 = options_.beta2(),
      .eps = options_.eps(),
      .grad_scale = grad_scale * ClipFactor(grad.norm, options_.clip_grad()),
      .step = step};
  for (const Moments& moments : moments_) {
    const Parameter& parameter = *moments.parameter;
    options.weight_decay = parameter.info.weight_decay ? options_.weight_decay() : 0;
    kernels::AdamW(*stream_, options, parameter.value, parameter.main_grad, moments.exp_avg,
                   moments.exp_avg_sq);
  }
  return StepResult{.grad_norm = grad.norm, .lr = lr};
}

std::vector<NamedState> AdamW::states() const {
  std::vector<NamedState> all;
  for (const Moments& moments : moments_) {
    const std::string& name = moments.parameter->info.name;
    all.push_back({"optimizer.exp_avg/" + name, moments.exp_avg, moments.parameter});
    all.push_back({"optimizer.exp_avg_sq/" + name, moments.exp_avg_sq, moments.parameter});
  }
  return all;
}

}  // namespace mega::optimizer
