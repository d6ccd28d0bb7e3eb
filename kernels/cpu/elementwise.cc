#include "kernels/elementwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cc"  // NOLINT
#include "hwy/foreach_target.h"
#include "kernels/cpu/edge.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/parallel_for.h"

HWY_BEFORE_NAMESPACE();
namespace mega::kernels::HWY_NAMESPACE {

void AddRange(const float* a, const float* b, float* out, int64_t n) {
  ForEachVector(n, [&](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  });
}

void ScaleRange(float* x, float factor, int64_t n) {
  ForEachVector(n, [&](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  });
}

// f(double vector) is summed over x in double: four running vectors and a tail.
template <typename F>
HWY_INLINE double SumInDouble(const float* x, int64_t n, F&& f) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = f(hn::PromoteTo(d, hn::LoadU(half, x + i)), s0);
    s1 = f(hn::PromoteTo(d, hn::LoadU(half, x + i + lanes)), s1);
    s2 = f(hn::PromoteTo(d, hn::LoadU(half, x + i + 2 * lanes)), s2);
    s3 = f(hn::PromoteTo(d, hn::LoadU(half, x + i + 3 * lanes)), s3);
  }
  const hn::CappedTag<double, 1> one;
  auto tail = hn::Zero(one);
  for (; i < n; ++i) tail = f(hn::Set(one, static_cast<double>(x[i])), tail);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)))) +
         hn::GetLane(tail);
}

double SumRange(const float* x, int64_t n) {
  return SumInDouble(x, n, [](auto v, auto sum) HWY_ATTR { return hn::Add(v, sum); });
}

double SumOfSquaresRange(const float* x, int64_t n) {
  return SumInDouble(x, n, [](auto v, auto sum) HWY_ATTR { return hn::MulAdd(v, v, sum); });
}

}  // namespace mega::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::kernels {
HWY_EXPORT(AddRange);
HWY_EXPORT(ScaleRange);
HWY_EXPORT(SumRange);
HWY_EXPORT(SumOfSquaresRange);

namespace {

constexpr int64_t kGrain = 32768;  // elements: below, a second thread costs more than it saves

// Blocks are cut by position and summed in order: threads only decide who computes which.
double SumOfBlocks(Stream& stream, TensorView x, double (*sum)(const float*, int64_t)) {
  constexpr int64_t kBlock = 16384;
  const float* data = Data(x);
  const int64_t n = x.elements(), blocks = (n + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<size_t>(blocks));
  ParallelFor(stream, blocks, 2, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      sums[b] = sum(data + b * kBlock, std::min(kBlock, n - b * kBlock));
  });
  double total = 0;
  for (const double s : sums) total += s;
  return total;
}

void CopyRows(Stream& stream, const TensorView& from, int64_t from_begin, const TensorView& to,
              int64_t to_begin, int64_t columns) {
  MEGA_CHECK_EQ(from.dim(0), to.dim(0));
  MEGA_CHECK(from.dtype() == to.dtype());
  MEGA_CHECK(from.device().kind == DeviceKind::kCpu && to.device().kind == DeviceKind::kCpu);
  const int64_t size = SizeOf(from.dtype());
  const int64_t from_row = from.dim(1) * size, to_row = to.dim(1) * size;
  const auto bytes = static_cast<size_t>(columns * size);
  if (bytes == 0) return;
  ParallelFor(stream, from.dim(0), kGrain / columns + 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      std::memcpy(to.data() + t * to_row + to_begin * size,
                  from.data() + t * from_row + from_begin * size, bytes);
  });
}

void CheckColumns(const TensorView& whole_TC, int64_t begin, const TensorView& part_TP) {
  MEGA_CHECK_EQ(whole_TC.rank(), 2);
  MEGA_CHECK_EQ(part_TP.rank(), 2);
  MEGA_CHECK_GE(begin, 0);
  MEGA_CHECK_LE(begin, whole_TC.dim(1) - part_TP.dim(1));
}

}  // namespace

void Fill(Stream& stream, TensorView x, float value) {
  float* data = Data(x);
  ParallelFor(stream, x.elements(), kGrain,
              [&](int64_t begin, int64_t end) { std::fill(data + begin, data + end, value); });
}

void Copy(Stream& stream, TensorView from, TensorView to) {
  CheckShape(to, from.shape());
  MEGA_CHECK(from.dtype() == to.dtype());
  MEGA_CHECK(from.device().kind == DeviceKind::kCpu && to.device().kind == DeviceKind::kCpu);
  if (from.data() == to.data()) return;
  ParallelFor(stream, from.bytes(), 4 * kGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(to.data() + begin, from.data() + begin, static_cast<size_t>(end - begin));
  });
}

void Add(Stream& stream, TensorView a, TensorView b, TensorView out) {
  CheckShape(b, a.shape());
  CheckShape(out, a.shape());
  const float *left = Data(a), *right = Data(b);
  float* to = Data(out);
  ParallelFor(stream, a.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AddRange)(left + begin, right + begin, to + begin, end - begin);
  });
}

void AddInPlace(Stream& stream, TensorView x, TensorView y) { Add(stream, x, y, y); }

void Scale(Stream& stream, TensorView x, float factor) {
  float* data = Data(x);
  ParallelFor(stream, x.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ScaleRange)(data + begin, factor, end - begin);
  });
}

void CopyColumnsOut(Stream& stream, TensorView whole_TC, int64_t begin, TensorView part_TP) {
  CheckColumns(whole_TC, begin, part_TP);
  CopyRows(stream, whole_TC, begin, part_TP, 0, part_TP.dim(1));
}

void CopyColumnsIn(Stream& stream, TensorView part_TP, TensorView whole_TC, int64_t begin) {
  CheckColumns(whole_TC, begin, part_TP);
  CopyRows(stream, part_TP, 0, whole_TC, begin, part_TP.dim(1));
}

double SumOfSquares(Stream& stream, TensorView x) {
  return SumOfBlocks(stream, x, HWY_DYNAMIC_DISPATCH(SumOfSquaresRange));
}

double Sum(Stream& stream, TensorView x) {
  return SumOfBlocks(stream, x, HWY_DYNAMIC_DISPATCH(SumRange));
}

}  // namespace mega::kernels
#endif
