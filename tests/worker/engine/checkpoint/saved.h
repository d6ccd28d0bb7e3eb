// A small training state and its checkpoints in a folder of the test's own.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"
#include "worker/engine/checkpoint/loader.h"
#include "worker/engine/checkpoint/manifest.h"
#include "worker/engine/checkpoint/shares.h"
#include "worker/engine/checkpoint/writer.h"

namespace mega::checkpoint {

using mega::testing::TempDir;

// Whole tensors with these shapes, named t0, t1 …; values differ everywhere and by `salt`.
struct State {
  State(Pool& pool, const std::vector<std::vector<int64_t>>& shapes, float salt);
  std::vector<Tensor> tensors;
  std::vector<NamedSlice> slices;
  bool operator==(const State& other) const;
};

// Saves `state` as `ranks` ranks would, each its share, and joins the parts to a manifest.
absl::StatusOr<v1::Manifest> SaveAs(int64_t ranks, const State& state, int64_t step,
                                    const std::string& folder, Pool& pool);
v1::Manifest Join(const std::vector<v1::CheckpointPart>& parts, int64_t step);
std::vector<NamedSlice> Rows(const State& state, int64_t member, int64_t members);

}  // namespace mega::checkpoint
