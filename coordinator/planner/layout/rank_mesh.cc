#include "coordinator/planner/layout/rank_mesh.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "base/check.h"

namespace mega::planner {
namespace {

int64_t OrOne(int64_t size) { return size == 0 ? 1 : size; }

// a · b, or 0 when it is more than any cluster has.
int64_t Product(std::initializer_list<int64_t> factors) {
  constexpr int64_t kMostRanks = int64_t{1} << 40;
  int64_t product = 1;
  for (int64_t factor : factors) {
    if (factor < 1 || factor > kMostRanks / product) return 0;
    product *= factor;
  }
  return product;
}

}  // namespace

absl::StatusOr<RankMesh> RankMesh::Make(const v1::Layout& layout, int64_t world_size) {
  const int64_t tp = OrOne(layout.tensor_parallel_size());
  const int64_t cp = OrOne(layout.context_parallel_size());
  const int64_t dp = OrOne(layout.data_parallel_size());
  const int64_t pp = OrOne(layout.pipeline_parallel_size());
  const int64_t ep = OrOne(layout.expert_parallel_size());
  const int64_t etp =
      layout.expert_tensor_parallel_size() == 0 ? tp : layout.expert_tensor_parallel_size();
  if (world_size < 1) return InvalidArgument("the world has {} ranks; give at least 1", world_size);
  if (Product({tp, cp, dp, pp}) != world_size)
    return InvalidArgument("tp {} × cp {} × dp {} × pp {} is not the world of {} ranks", tp, cp, dp,
                           pp, world_size);
  const int64_t expert_block = Product({etp, ep, pp});
  if (expert_block == 0 || world_size % expert_block != 0)
    return InvalidArgument("etp {} × ep {} × pp {} does not divide the world of {} ranks", etp, ep,
                           pp, world_size);
  const int64_t edp = world_size / expert_block;

  const std::string order = layout.rank_order().empty() ? "tp-cp-ep-dp-pp" : layout.rank_order();
  if (order != "tp-cp-ep-dp-pp" && order != "tp-cp-ep-pp-dp")
    return InvalidArgument(
        "parallelism.rank_order is '{}'; choose tp-cp-ep-dp-pp or tp-cp-ep-pp-dp", order);
  // With pp inside dp the pipelines of the two grids are the same ranks only for equal dp.
  if (order == "tp-cp-ep-pp-dp" && dp != edp)
    return InvalidArgument(
        "parallelism.rank_order tp-cp-ep-pp-dp needs equal data parallelism of attention and "
        "experts, but dp is {} and edp is {}; choose tp-cp-ep-dp-pp",
        dp, edp);

  RankMesh mesh;
  mesh.world_size_ = world_size;
  mesh.dense_[kTensorSlot].size = tp;
  mesh.dense_[kContextSlot].size = cp;
  mesh.dense_[kDataSlot].size = dp;
  mesh.expert_[kTensorSlot].size = etp;
  mesh.expert_[kExpertSlot].size = ep;
  mesh.expert_[kDataSlot].size = edp;
  mesh.dense_[kPipelineSlot].size = mesh.expert_[kPipelineSlot].size = pp;
  const std::array<Slot, kSlots> by_stride =
      order == "tp-cp-ep-dp-pp"
          ? std::array{kTensorSlot, kContextSlot, kExpertSlot, kDataSlot, kPipelineSlot}
          : std::array{kTensorSlot, kContextSlot, kExpertSlot, kPipelineSlot, kDataSlot};
  for (Grid* grid : {&mesh.dense_, &mesh.expert_}) {
    int64_t stride = 1;
    for (Slot slot : by_stride) {
      (*grid)[slot].stride = stride;
      stride *= (*grid)[slot].size;
    }
  }
  return mesh;
}

int64_t RankMesh::SizeOf(Axis axis) const {
  switch (axis) {
    case Axis::kTensor:
      return dense_[kTensorSlot].size;
    case Axis::kContext:
      return dense_[kContextSlot].size;
    case Axis::kData:
      return dense_[kDataSlot].size;
    case Axis::kPipeline:
      return dense_[kPipelineSlot].size;
    case Axis::kExpert:
      return expert_[kExpertSlot].size;
    case Axis::kExpertTensor:
      return expert_[kTensorSlot].size;
  }
  return 1;
}

Coords RankMesh::CoordsOf(int64_t rank) const {
  MEGA_CHECK(rank >= 0 && rank < world_size_);
  return {.tp = dense_[kTensorSlot].Of(rank),
          .cp = dense_[kContextSlot].Of(rank),
          .dp = dense_[kDataSlot].Of(rank),
          .pp = dense_[kPipelineSlot].Of(rank),
          .etp = expert_[kTensorSlot].Of(rank),
          .ep = expert_[kExpertSlot].Of(rank),
          .edp = expert_[kDataSlot].Of(rank)};
}

int64_t RankMesh::RankOf(int64_t tp, int64_t cp, int64_t dp, int64_t pp) const {
  const int64_t rank = tp * dense_[kTensorSlot].stride + cp * dense_[kContextSlot].stride +
                       dp * dense_[kDataSlot].stride + pp * dense_[kPipelineSlot].stride;
  MEGA_CHECK(rank >= 0 && rank < world_size_);
  return rank;
}

std::vector<int64_t> RankMesh::Group(const Grid& grid, const std::array<bool, kSlots>& varies,
                                     int64_t rank) {
  std::vector<int64_t> group = {rank};
  for (int slot = 0; slot < kSlots; ++slot)
    if (varies[slot]) group[0] -= grid[slot].Of(rank) * grid[slot].stride;
  for (int slot = 0; slot < kSlots; ++slot) {
    if (!varies[slot]) continue;
    const size_t count = group.size();
    for (int64_t digit = 1; digit < grid[slot].size; ++digit)
      for (size_t i = 0; i < count; ++i) group.push_back(group[i] + digit * grid[slot].stride);
  }
  std::sort(group.begin(), group.end());
  return group;
}

std::vector<int64_t> RankMesh::GroupOf(int64_t rank, std::span<const Axis> axes) const {
  MEGA_CHECK(rank >= 0 && rank < world_size_);
  std::array<bool, kSlots> varies{};
  for (Axis axis : axes) {
    if (axis == Axis::kExpert || axis == Axis::kExpertTensor) return ExpertGroupOf(rank, axes);
    varies[kTensorSlot] |= axis == Axis::kTensor;
    varies[kContextSlot] |= axis == Axis::kContext;
    varies[kDataSlot] |= axis == Axis::kData;
    varies[kPipelineSlot] |= axis == Axis::kPipeline;
  }
  return Group(dense_, varies, rank);
}

std::vector<int64_t> RankMesh::ExpertGroupOf(int64_t rank, std::span<const Axis> axes) const {
  MEGA_CHECK(rank >= 0 && rank < world_size_);
  std::array<bool, kSlots> varies{};
  for (Axis axis : axes) {
    MEGA_CHECK(axis != Axis::kContext);  // the expert grid has none
    varies[kTensorSlot] |= axis == Axis::kTensor || axis == Axis::kExpertTensor;
    varies[kExpertSlot] |= axis == Axis::kExpert;
    varies[kDataSlot] |= axis == Axis::kData;
    varies[kPipelineSlot] |= axis == Axis::kPipeline;
  }
  return Group(expert_, varies, rank);
}

}  // namespace mega::planner
