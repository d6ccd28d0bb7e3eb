// GEMM is oneDNN's dnnl_sgemm: within 5 % of its matmul primitive at the shapes of small models
// (90-99 % of one core's FMA peak, faster for weight gradients), and it needs no cache of
// primitives by shape.
#include "kernels/matmul.h"

#include <algorithm>

#include "dnnl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/matmul.cc"  // NOLINT
#include "hwy/foreach_target.h"
#include "kernels/cpu/column_sum-inl.h"
#include "kernels/cpu/edge.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/elementwise.h"
#include "kernels/parallel_for.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

void AddBiasRow(const float* bias, float* y, int64_t O) {
  ForEachVector(O, [&](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::LoadU(d, bias + i)), d, y + i);
  });
}

void AddBiasBackwardColumns(const float* dy, int64_t T, int64_t O, int64_t begin, int64_t end,
                            float* dbias) {
  ColumnSum(T, begin, end, dbias,
            [&](auto d, int64_t t, int64_t i) HWY_ATTR { return hn::LoadU(d, dy + t * O + i); });
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::kernels {
HWY_EXPORT(AddBiasRow);
HWY_EXPORT(AddBiasBackwardColumns);

void Matmul(Stream& stream, TensorView a, bool transpose_a, TensorView b, bool transpose_b,
            TensorView c_MN, float beta) {
  const int64_t M = c_MN.dim(0), N = c_MN.dim(1);
  const int64_t K = a.dim(transpose_a ? 0 : 1);
  CheckShape(a, transpose_a ? Shape{K, M} : Shape{M, K});
  CheckShape(b, transpose_b ? Shape{N, K} : Shape{K, N});
  MEGA_CHECK_EQ(c_MN.rank(), 2);
  MEGA_CHECK(beta == 0 || beta == 1);
  if (M == 0 || N == 0) return;
  if (K == 0) {
    if (beta == 0) Fill(stream, c_MN, 0);
    return;
  }
  const ScopedTeam team(stream);
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', M, N, K, 1.0f, Data(a), a.dim(1),
                 Data(b), b.dim(1), beta, Data(c_MN), N);
  // It fails only for arguments that the checks above exclude, or for want of memory.
  MEGA_CHECK_EQ(static_cast<int>(status), static_cast<int>(dnnl_success));
}

void LinearForward(Stream& stream, TensorView x_TI, TensorView w_OI, TensorView y_TO) {
  Matmul(stream, x_TI, false, w_OI, true, y_TO, 0);
}

void LinearBackwardInput(Stream& stream, TensorView dy_TO, TensorView w_OI, TensorView dx_TI,
                         float beta) {
  Matmul(stream, dy_TO, false, w_OI, false, dx_TI, beta);
}

void LinearBackwardWeight(Stream& stream, TensorView dy_TO, TensorView x_TI, TensorView dw_OI) {
  Matmul(stream, dy_TO, true, x_TI, false, dw_OI, 1);
}

void AddBias(Stream& stream, TensorView y_TO, TensorView bias_O) {
  const int64_t T = y_TO.dim(0), O = y_TO.dim(1);
  CheckShape(bias_O, {O});
  const float* bias = Data(bias_O);
  float* y = Data(y_TO);
  ParallelFor(stream, T, 16384 / (O + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) HWY_DYNAMIC_DISPATCH(AddBiasRow)(bias, y + t * O, O);
  });
}

void AddBiasBackward(Stream& stream, TensorView dy_TO, TensorView dbias_O) {
  const int64_t T = dy_TO.dim(0), O = dy_TO.dim(1);
  CheckShape(dbias_O, {O});
  const float* dy = Data(dy_TO);
  float* dbias = Data(dbias_O);
  ParallelFor(stream, O, std::max<int64_t>(64, 16384 / (T + 1)), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AddBiasBackwardColumns)(dy, T, O, begin, end, dbias);
  });
}

}  // namespace mega::kernels
#endif
