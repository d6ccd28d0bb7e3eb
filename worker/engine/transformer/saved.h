// What a block keeps between the forward and the backward of a micro-batch. Few micro-batches are
// alive at once (the schedule bounds them), so a short list is the right map.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"

namespace mega::transformer {

template <typename T>
class Saved {
 public:
  T& Put(int64_t micro_batch, T value) {
    MEGA_CHECK(Find(micro_batch) == entries_.end());  // one forward a micro-batch
    return entries_.emplace_back(micro_batch, std::move(value)).second;
  }
  T& At(int64_t micro_batch) {
    const auto found = Find(micro_batch);
    MEGA_CHECK(found != entries_.end());  // backward follows the forward of its micro-batch
    return found->second;
  }
  void Drop(int64_t micro_batch) {
    const auto found = Find(micro_batch);
    MEGA_CHECK(found != entries_.end());
    entries_.erase(found);
  }
  bool empty() const { return entries_.empty(); }
  void Clear() { entries_.clear(); }

 private:
  auto Find(int64_t micro_batch) {
    return std::find_if(entries_.begin(), entries_.end(),
                        [&](const auto& entry) { return entry.first == micro_batch; });
  }
  std::vector<std::pair<int64_t, T>> entries_;
};

}  // namespace mega::transformer
