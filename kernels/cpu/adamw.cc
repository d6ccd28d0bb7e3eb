#include "kernels/adamw.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cc"  // NOLINT
#include "hwy/foreach_target.h"
#include "kernels/cpu/adamw_factors.h"
#include "kernels/cpu/edge.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/parallel_for.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

void AdamWRange(const AdamWFactors& f, float* param, const float* grad, float* exp_avg,
                float* exp_avg_sq, int64_t n) {
  ForEachVector(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = hn::Mul(hn::LoadU(d, grad + i), hn::Set(d, f.grad_scale));
    const auto m = hn::MulAdd(hn::LoadU(d, exp_avg + i), hn::Set(d, f.beta1),
                              hn::Mul(g, hn::Set(d, f.one_less_beta1)));
    const auto v = hn::MulAdd(hn::LoadU(d, exp_avg_sq + i), hn::Set(d, f.beta2),
                              hn::Mul(hn::Mul(g, g), hn::Set(d, f.one_less_beta2)));
    const auto root = hn::MulAdd(hn::Sqrt(v), hn::Set(d, f.root_scale), hn::Set(d, f.eps));
    const auto p = hn::Mul(hn::LoadU(d, param + i), hn::Set(d, f.decay));
    hn::StoreU(m, d, exp_avg + i);
    hn::StoreU(v, d, exp_avg_sq + i);
    hn::StoreU(hn::Sub(p, hn::Div(hn::Mul(m, hn::Set(d, f.step_size)), root)), d, param + i);
  });
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::kernels {
HWY_EXPORT(AdamWRange);

void AdamW(Stream& stream, const AdamWOptions& options, TensorView param, TensorView grad,
           TensorView exp_avg, TensorView exp_avg_sq) {
  CheckShape(grad, param.shape());
  CheckShape(exp_avg, param.shape());
  CheckShape(exp_avg_sq, param.shape());
  MEGA_CHECK_GE(options.step, 1);
  const double step = static_cast<double>(options.step);
  const AdamWFactors factors{
      .decay = static_cast<float>(1 - options.lr * options.weight_decay),
      .beta1 = static_cast<float>(options.beta1),
      .one_less_beta1 = static_cast<float>(1 - options.beta1),
      .beta2 = static_cast<float>(options.beta2),
      .one_less_beta2 = static_cast<float>(1 - options.beta2),
      .step_size = static_cast<float>(options.lr / (1 - std::pow(options.beta1, step))),
      .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, step))),
      .eps = static_cast<float>(options.eps),
      .grad_scale = static_cast<float>(options.grad_scale),
  };
  float *p = Data(param), *m = Data(exp_avg), *v = Data(exp_avg_sq);
  const float* g = Data(grad);
  ParallelFor(stream, param.elements(), 16384, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AdamWRange)
    (factors, p + begin, g + begin, m + begin, v + begin, end - begin);
  });
}

}  // namespace mega::kernels
#endif
