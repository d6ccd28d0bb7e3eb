#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy.cc"  // NOLINT
#include "hwy/foreach_target.h"
#include "kernels/cpu/edge.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/parallel_for.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

// Maximum, and log of the sum of e^(x - maximum).
void LogSumExpRow(const float* x, int64_t V, float* maximum, float* log_sum) {
  const F32 d;
  const int64_t lanes = Lanes();
  auto most = hn::Set(d, -std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + lanes <= V; i += lanes) most = hn::Max(most, hn::LoadU(d, x + i));
  float m = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < V; ++i) m = std::max(m, x[i]);
  const float sum = RowSum(V, [&](auto tag, int64_t j) HWY_ATTR {
    return ExpBelow88(tag, hn::Sub(hn::LoadU(tag, x + j), hn::Set(tag, m)));
  });
  *maximum = m;
  *log_sum = std::log(sum);
}

// dx = scale · e^(x - lse), and the label's element less scale.
void SoftmaxGradientRow(const float* x, int64_t V, float lse, float scale, float* dx) {
  // The rounding of a large lse would scale the whole row; there the row is summed and divided.
  if (std::abs(lse) > 16) {
    const float sum = RowSum(V, [&](auto d, int64_t i) HWY_ATTR {
      const auto e = ExpBelow88(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, lse)));
      hn::StoreU(e, d, dx + i);
      return e;
    });
    ForEachVector(V, [&](auto d, int64_t i) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(d, dx + i), hn::Set(d, scale / sum)), d, dx + i);
    });
    return;
  }
  ForEachVector(V, [&](auto d, int64_t i) HWY_ATTR {
    const auto e = ExpBelow88(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, lse)));
    hn::StoreU(hn::Mul(e, hn::Set(d, scale)), d, dx + i);
  });
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::kernels {
HWY_EXPORT(LogSumExpRow);
HWY_EXPORT(SoftmaxGradientRow);

namespace {

constexpr int64_t kGrain = 8192;  // elements: below, a second thread costs more than it saves

void CheckLabel(int32_t label, int64_t V) {
  MEGA_CHECK(label == kIgnoredLabel || (label >= 0 && label < V));
}

}  // namespace

void CrossEntropyForward(Stream& stream, TensorView logits_TV, TensorView labels_T,
                         TensorView loss_T, TensorView lse_T) {
  const int64_t T = logits_TV.dim(0), V = logits_TV.dim(1);
  CheckShape(labels_T, {T});
  CheckShape(loss_T, {T});
  CheckShape(lse_T, {T});
  const float* logits = Data(logits_TV);
  const int32_t* labels = Data<const int32_t>(labels_T);
  float *loss = Data(loss_T), *lse = Data(lse_T);
  ParallelFor(stream, T, kGrain / (V + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      CheckLabel(labels[t], V);
      float maximum, log_sum;
      HWY_DYNAMIC_DISPATCH(LogSumExpRow)(logits + t * V, V, &maximum, &log_sum);
      lse[t] = maximum + log_sum;
      // In this order nothing cancels when the logits are large.
      loss[t] = labels[t] == kIgnoredLabel ? 0 : (maximum - logits[t * V + labels[t]]) + log_sum;
    }
  });
}

void CrossEntropyBackward(Stream& stream, TensorView logits_TV, TensorView labels_T,
                          TensorView lse_T, float scale, TensorView dlogits_TV) {
  const int64_t T = logits_TV.dim(0), V = logits_TV.dim(1);
  CheckShape(labels_T, {T});
  CheckShape(lse_T, {T});
  CheckShape(dlogits_TV, {T, V});
  const float *logits = Data(logits_TV), *lse = Data(lse_T);
  const int32_t* labels = Data<const int32_t>(labels_T);
  float* dlogits = Data(dlogits_TV);
  ParallelFor(stream, T, kGrain / (V + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      CheckLabel(labels[t], V);
      float* row = dlogits + t * V;
      if (labels[t] == kIgnoredLabel) {
        std::fill_n(row, V, 0.0f);
        continue;
      }
      HWY_DYNAMIC_DISPATCH(SoftmaxGradientRow)(logits + t * V, V, lse[t], scale, row);
      row[labels[t]] -= scale;
    }
  });
}

}  // namespace mega::kernels
#endif
