#include "worker/engine/profiler/peak_flops.h"

#include <algorithm>
#include <chrono>

#include "kernels/device/buffer.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"

namespace mega::profiler {

using kernels::Buffer;
using kernels::DType;
using kernels::Shape;
using kernels::TensorView;

double MeasurePeakFlops(kernels::Stream& stream) {
  constexpr int64_t kSize = 384;  // 0.6 MB a matrix: in the second-level cache
  constexpr std::chrono::milliseconds kBudget(25);
  using Clock = std::chrono::steady_clock;

  absl::StatusOr<Buffer> memory =
      Buffer::Allocate(stream.device(), 3 * kSize * kSize * kernels::SizeOf(DType::kF32));
  MEGA_CHECK_OK(memory);
  const TensorView all(memory->data(), DType::kF32, Shape({3, kSize, kSize}), stream.device());
  kernels::Fill(stream, all, 0.5f);
  const Shape square({kSize, kSize});
  const TensorView a = all.Rows(0, 1).View(square), b = all.Rows(1, 1).View(square),
                   c = all.Rows(2, 1).View(square);

  kernels::LinearForward(stream, a, b, c);  // warms the primitive cache
  stream.Synchronize();
  double best_seconds = 1e30;
  const Clock::time_point end = Clock::now() + kBudget;
  for (Clock::time_point start = Clock::now(); start < end;) {
    kernels::LinearForward(stream, a, b, c);
    stream.Synchronize();
    const Clock::time_point now = Clock::now();
    best_seconds = std::min(best_seconds, std::chrono::duration<double>(now - start).count());
    start = now;
  }
  return 2.0 * kSize * kSize * kSize / best_seconds;
}

}  // namespace mega::profiler
