#include "worker/engine/distributed/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace mega::distributed {
namespace {

struct SumOf {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct MaxOf {
  template <typename T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;  // NOLINT(misc-redundant-expression): not a number
  }
};
struct MinOf {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;  // NOLINT(misc-redundant-expression): not a number
  }
};

// Block by block through a buffer that stays in the first-level cache, so each source is read once
// and `target` may alias any of them.
template <typename T, typename Op>
void Reduce(Op op, std::span<const std::byte* const> sources, std::byte* target, int64_t elements) {
  constexpr int64_t kBlock = 2048;
  alignas(64) std::array<T, kBlock> sum;
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const int64_t count = std::min(kBlock, elements - begin);
    std::memcpy(sum.data(), sources[0] + begin * sizeof(T), count * sizeof(T));
    for (size_t s = 1; s < sources.size(); ++s) {
      const T* from = reinterpret_cast<const T*>(sources[s]) + begin;
      for (int64_t i = 0; i < count; ++i) sum[i] = op(sum[i], from[i]);
    }
    std::memcpy(target + begin * sizeof(T), sum.data(), count * sizeof(T));
  }
}

template <typename T>
void ReduceAs(ReduceOp op, std::span<const std::byte* const> sources, std::byte* target,
              int64_t elements) {
  switch (op) {
    case ReduceOp::kSum:
      return Reduce<T>(SumOf{}, sources, target, elements);
    case ReduceOp::kMax:
      return Reduce<T>(MaxOf{}, sources, target, elements);
    case ReduceOp::kMin:
      return Reduce<T>(MinOf{}, sources, target, elements);
  }
}

}  // namespace

void ReduceInOrder(DType dtype, ReduceOp op, std::span<const std::byte* const> sources,
                   std::byte* target, int64_t elements) {
  switch (dtype) {
    case DType::kF32:
      return ReduceAs<float>(op, sources, target, elements);
    case DType::kF64:
      return ReduceAs<double>(op, sources, target, elements);
    case DType::kI32:
      return ReduceAs<int32_t>(op, sources, target, elements);
    case DType::kI64:
      return ReduceAs<int64_t>(op, sources, target, elements);
    default:
      break;
  }
  check::Fail(__FILE__, __LINE__, fmt::format("{} cannot be reduced", kernels::NameOf(dtype)));
}

}  // namespace mega::distributed
