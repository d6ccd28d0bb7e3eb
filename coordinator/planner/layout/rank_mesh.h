// Ranks ⇄ coordinates on the attention grid TP×CP×DP×PP and the expert grid ETP×EP×EDP×PP, and the
// groups that follow. Rank order as in Megatron Core: leftmost axis of the order varies fastest.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "coordinator/planner/model/sharding.h"
#include "mega/v1/plan.pb.h"

namespace mega::planner {

struct Coords {
  int64_t tp = 0, cp = 0, dp = 0, pp = 0;  // attention grid
  int64_t etp = 0, ep = 0, edp = 0;        // expert grid (same pp)
  friend bool operator==(const Coords&, const Coords&) = default;
};

class RankMesh {
 public:
  // Sizes left 0 are 1, etp left 0 is tp, an empty order is tp-cp-ep-dp-pp. INVALID_ARGUMENT when
  // the sizes do not make world_size, the two grids do not share their pipelines, or the order is
  // unknown.
  static absl::StatusOr<RankMesh> Make(const v1::Layout& layout, int64_t world_size);

  int64_t world_size() const { return world_size_; }
  int64_t SizeOf(Axis axis) const;
  int64_t expert_data_size() const { return expert_[kDataSlot].size; }
  Coords CoordsOf(int64_t rank) const;
  int64_t RankOf(int64_t tp, int64_t cp, int64_t dp, int64_t pp) const;

  // Ranks that differ from `rank` only on `axes`, in rank order; contains `rank`. On the expert
  // grid when an expert axis is among them, and then kData is expert data parallelism.
  std::vector<int64_t> GroupOf(int64_t rank, std::span<const Axis> axes) const;
  std::vector<int64_t> GroupOf(int64_t rank, std::initializer_list<Axis> axes) const {
    return GroupOf(rank, std::span<const Axis>(axes.begin(), axes.size()));
  }
  // The same on the expert grid whatever the axes: kTensor is expert tensor parallelism.
  std::vector<int64_t> ExpertGroupOf(int64_t rank, std::span<const Axis> axes) const;
  std::vector<int64_t> ExpertGroupOf(int64_t rank, std::initializer_list<Axis> axes) const {
    return ExpertGroupOf(rank, std::span<const Axis>(axes.begin(), axes.size()));
  }

 private:
  // One axis of one grid: digit = rank / stride % size.
  struct Digit {
    int64_t size = 1;
    int64_t stride = 1;
    int64_t Of(int64_t rank) const { return rank / stride % size; }
  };
  // Slots of both grids. The dense grid has no experts, the expert grid no context.
  enum Slot { kTensorSlot, kContextSlot, kExpertSlot, kDataSlot, kPipelineSlot, kSlots };
  using Grid = std::array<Digit, kSlots>;
  static std::vector<int64_t> Group(const Grid& grid, const std::array<bool, kSlots>& varies,
                                    int64_t rank);

  RankMesh() = default;
  Grid dense_, expert_;
  int64_t world_size_ = 0;
};

}  // namespace mega::planner
