// Ranks ⇄ coordinates on the attention grid TP×CP×DP×PP and the expert grid ETP×EP×EDP×PP, and the
// groups that follow. Rank order as in Megatron Core: leftmost axis of the order varies fastest.
#pragma once

#include <cstdint>
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
  // INVALID_ARGUMENT when the sizes do not make world_size or the order is unknown.
  static absl::StatusOr<RankMesh> Make(const v1::Layout& layout, int64_t world_size);

  int64_t world_size() const { return world_size_; }
  int64_t SizeOf(Axis axis) const;
  Coords CoordsOf(int64_t rank) const;
  int64_t RankOf(int64_t tp, int64_t cp, int64_t dp, int64_t pp) const;
  // Ranks that differ from `rank` only on `axes`, in rank order; contains `rank`.
  std::vector<int64_t> GroupOf(int64_t rank, const std::vector<Axis>& axes) const;

 private:
  RankMesh() = default;
  v1::Layout layout_;
  int64_t world_size_ = 0;
  int64_t edp_ = 1;
};

}  // namespace mega::planner
