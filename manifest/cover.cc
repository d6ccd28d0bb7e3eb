// The slices' edges divide each dimension into intervals, and the tensor into cells. Give each
// interval a weight out of a large field, and a box the product of its extents' weights: the sum
// over all slices is the polynomial in the weights whose coefficients count how often each cell is
// held. It equals the whole tensor's if every count is one; if not, the two differ for all but
// dimensions / 2^61 of the weights (Schwartz 1980, Zippel 1979). The weights are a fixed hash, so
// that the same parts are judged the same everywhere.
#include "manifest/cover.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/hash.h"
#include "manifest/shape_text.h"

namespace mega::manifest {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 50;
constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
// Spent on naming two slices that overlap, once it is known that some do.
constexpr int64_t kMostComparisons = 1'000'000;

using Slices = std::vector<const v1::TensorSlice*>;

// Elements of a shape; nullopt when an extent is negative or the product is too large.
template <typename Shape>
std::optional<int64_t> Count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count) || count > kMostElements) {
      return std::nullopt;
    }
  }
  return count;
}

absl::Status CheckInside(const v1::TensorSlice& slice, const v1::TensorInfo& tensor) {
  const int dims = tensor.global_shape_size();
  bool is_inside = slice.offset_size() == dims && slice.shape_size() == dims;
  for (int d = 0; is_inside && d < dims; ++d) {
    // Written so that no sum can overflow.
    is_inside = slice.offset(d) >= 0 && slice.shape(d) >= 0 &&
                slice.shape(d) <= tensor.global_shape(d) &&
                slice.offset(d) <= tensor.global_shape(d) - slice.shape(d);
  }
  if (is_inside) return absl::OkStatus();
  return InvalidArgument("a slice of '{}' at {} of shape {} is not inside {}", slice.tensor(),
                         ShapeText(slice.offset()), ShapeText(slice.shape()),
                         ShapeText(tensor.global_shape()));
}

uint64_t Sum(uint64_t a, uint64_t b) { return (a + b) % kPrime; }
uint64_t Difference(uint64_t a, uint64_t b) { return Sum(a, kPrime - b); }
uint64_t Product(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % kPrime);
}

uint64_t Weight(int dimension, int64_t at) {
  const uint64_t stream = 0x9e3779b97f4a7c15u * static_cast<uint64_t>(dimension + 1);
  return Finalise(static_cast<uint64_t>(at) + stream) % kPrime;
}

// Weights of one dimension's extents.
class Scale {
 public:
  Scale(int dimension, int64_t extent, const Slices& slices) : edges_{0, extent} {
    for (const v1::TensorSlice* slice : slices) {
      edges_.push_back(slice->offset(dimension));
      edges_.push_back(slice->offset(dimension) + slice->shape(dimension));
    }
    std::ranges::sort(edges_);
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    before_.assign(1, 0);
    for (size_t i = 0; i + 1 < edges_.size(); ++i) {
      before_.push_back(Sum(before_.back(), Weight(dimension, edges_[i])));
    }
  }
  uint64_t Of(int64_t from, int64_t size) const {
    return Difference(Before(from + size), Before(from));
  }

 private:
  uint64_t Before(int64_t edge) const {
    return before_[static_cast<size_t>(std::ranges::lower_bound(edges_, edge) - edges_.begin())];
  }

  std::vector<int64_t> edges_;
  std::vector<uint64_t> before_;  // weights of the intervals up to an edge
};

bool HoldEachCellOnce(const v1::TensorInfo& tensor, const Slices& slices) {
  std::vector<uint64_t> products(slices.size(), 1);
  uint64_t whole = 1;
  for (int d = 0; d < tensor.global_shape_size(); ++d) {
    const Scale scale(d, tensor.global_shape(d), slices);
    for (size_t i = 0; i < slices.size(); ++i) {
      products[i] = Product(products[i], scale.Of(slices[i]->offset(d), slices[i]->shape(d)));
    }
    whole = Product(whole, scale.Of(0, tensor.global_shape(d)));
  }
  uint64_t sum = 0;
  for (const uint64_t product : products) sum = Sum(sum, product);
  return sum == whole;
}

bool Overlap(const v1::TensorSlice& a, const v1::TensorSlice& b) {
  for (int d = 0; d < a.offset_size(); ++d) {
    const int64_t from = std::max(a.offset(d), b.offset(d));
    if (from >= std::min(a.offset(d) + a.shape(d), b.offset(d) + b.shape(d))) return false;
  }
  return true;
}

absl::Status Overlapping(const v1::TensorInfo& tensor, const Slices& slices) {
  int64_t comparisons = 0;
  for (size_t i = 0; i < slices.size() && comparisons < kMostComparisons; ++i) {
    for (size_t j = 0; j < i && comparisons < kMostComparisons; ++j, ++comparisons) {
      if (!Overlap(*slices[i], *slices[j])) continue;
      return InvalidArgument("two slices of '{}', at {} and {}, overlap", tensor.name(),
                             ShapeText(slices[j]->offset()), ShapeText(slices[i]->offset()));
    }
  }
  return InvalidArgument("of the {} slices of '{}' some overlap", slices.size(), tensor.name());
}

}  // namespace

absl::Status CheckCover(const v1::TensorInfo& tensor, const Slices& slices) {
  const std::optional<int64_t> size = Count(tensor.global_shape());
  if (!size || tensor.global_shape_size() > kMostDimensions) {
    return InvalidArgument(
        "tensor '{}' of {} dimensions has an impossible shape, {}; at most {} dimensions and 2^50 "
        "elements are possible",
        tensor.name(), tensor.global_shape_size(), ShapeText(tensor.global_shape()),
        kMostDimensions);
  }
  int64_t covered = 0;
  for (const v1::TensorSlice* slice : slices) {
    MEGA_RETURN_IF_ERROR(CheckInside(*slice, tensor));
    if (__builtin_add_overflow(covered, *Count(slice->shape()), &covered) || covered > *size) {
      return InvalidArgument("the slices of '{}' cover more than its {} elements", tensor.name(),
                             *size);
    }
  }
  if (covered != *size) {
    return InvalidArgument("the slices of '{}' cover {} of its {} elements", tensor.name(), covered,
                           *size);
  }
  return HoldEachCellOnce(tensor, slices) ? absl::OkStatus() : Overlapping(tensor, slices);
}

}  // namespace mega::manifest
