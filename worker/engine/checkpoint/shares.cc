// The tensors laid end to end make one line of bytes; member k owns [total·k/members,
// total·(k+1)/members). A small tensor belongs to whoever owns its first byte; a large one is cut
// at the row where the owner changes.
#include "worker/engine/checkpoint/shares.h"

#include <algorithm>

namespace mega::checkpoint {
namespace {

constexpr int64_t kCutAboveBytes = 1 << 20;

NamedSlice RowsOf(const NamedSlice& slice, int64_t first, int64_t count) {
  NamedSlice part = slice;
  part.view = slice.view.Rows(first, count);
  part.offset[0] += first;
  return part;
}

}  // namespace

std::vector<NamedSlice> ShareOf(std::span<const NamedSlice> all, int64_t member, int64_t members) {
  MEGA_CHECK_GE(member, 0);
  MEGA_CHECK_LT(member, members);
  int64_t total = 0;
  for (const NamedSlice& slice : all) total += slice.view.bytes();
  const auto boundary = [&](int64_t k) {
    return static_cast<int64_t>(static_cast<__int128>(total) * k / members);
  };
  const int64_t begin = boundary(member);
  const int64_t end = boundary(member + 1);
  const bool is_last = member + 1 == members;

  std::vector<NamedSlice> share;
  int64_t start = 0;  // of this tensor on the line
  for (const NamedSlice& slice : all) {
    const int64_t bytes = slice.view.bytes();
    if (bytes > kCutAboveBytes && slice.view.rank() > 0) {
      const int64_t rows = slice.view.dim(0);
      const int64_t row_bytes = bytes / rows;
      // The first row that starts at or after a boundary: the same formula for both neighbours.
      const auto row_at = [&](int64_t at) {
        return std::clamp<int64_t>((at - start + row_bytes - 1) / row_bytes, 0, rows);
      };
      const int64_t first = row_at(begin);
      const int64_t past = is_last ? rows : row_at(end);
      if (past > first) share.push_back(RowsOf(slice, first, past - first));
    } else if (start >= begin && (start < end || is_last)) {
      share.push_back(slice);
    }
    start += bytes;
  }
  return share;
}

}  // namespace mega::checkpoint
