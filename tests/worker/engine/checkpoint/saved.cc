#include "tests/worker/engine/checkpoint/saved.h"

#include <cstring>
#include <set>

namespace mega::checkpoint {

State::State(Pool& pool, const std::vector<std::vector<int64_t>>& shapes, float salt) {
  for (size_t t = 0; t < shapes.size(); ++t) {
    tensors.push_back(pool.Allocate(DType::kF32, Shape(shapes[t]), Purpose::kWeights));
    int64_t i = 0;
    for (float& value : tensors.back().view().flat<float>())
      value = salt + static_cast<float>(t) * 1000.0f + static_cast<float>(i++);
    slices.push_back({.name = fmt::format("t{}", t),
                      .global_shape = shapes[t],
                      .offset = std::vector<int64_t>(shapes[t].size(), 0),
                      .view = tensors.back()});
  }
}

bool State::operator==(const State& other) const {
  for (size_t t = 0; t < tensors.size(); ++t) {
    const TensorView a = tensors[t], b = other.tensors[t];
    if (a.bytes() != b.bytes() || std::memcmp(a.data(), b.data(), a.bytes()) != 0) return false;
  }
  return tensors.size() == other.tensors.size();
}

v1::Manifest Join(const std::vector<v1::CheckpointPart>& parts, int64_t step) {
  v1::Manifest manifest;
  manifest.set_version(1);
  manifest.set_step(step);
  manifest.mutable_state()->set_step(step);
  std::set<std::string> known;
  for (const v1::CheckpointPart& part : parts) {
    for (const v1::TensorInfo& tensor : part.tensors())
      if (known.insert(tensor.name()).second) *manifest.add_tensors() = tensor;
    manifest.mutable_slices()->MergeFrom(part.slices());
    manifest.mutable_files()->MergeFrom(part.files());
  }
  return manifest;
}

absl::StatusOr<v1::Manifest> SaveAs(int64_t ranks, const State& state, int64_t step,
                                    const std::string& folder, Pool& pool) {
  std::vector<v1::CheckpointPart> parts;
  absl::Status failed;
  Stream stream;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    v1::RankRef self;
    self.set_rank(rank);
    self.set_attempt(1);
    Writer writer(folder, self, pool, stream,
                  [&](int64_t, absl::StatusOr<v1::CheckpointPart> part) {
                    if (part.ok())
                      parts.push_back(*std::move(part));
                    else
                      failed = part.status();
                  });
    MEGA_CHECK_OK(writer.Save(step, ShareOf(state.slices, rank, ranks), std::nullopt));
    MEGA_CHECK(writer.WaitIdle(absl::Seconds(60)));
  }
  if (!failed.ok()) return failed;
  return Join(parts, step);
}

// What `member` of `members` would want if every tensor were cut between rows.
std::vector<NamedSlice> Rows(const State& state, int64_t member, int64_t members) {
  std::vector<NamedSlice> wanted;
  for (NamedSlice slice : state.slices) {
    if (slice.view.rank() > 0) {
      const int64_t rows = slice.view.dim(0);
      const int64_t begin = rows * member / members, end = rows * (member + 1) / members;
      slice.view = slice.view.Rows(begin, end - begin);
      slice.offset[0] = begin;
    }
    wanted.push_back(slice);
  }
  return wanted;
}

}  // namespace mega::checkpoint
