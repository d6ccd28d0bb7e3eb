#include "base/nearest.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace mega {
namespace {

constexpr size_t kLongestWord = 64;

// "numLayers" and "num-layers" are "num_layers" to a reader.
std::string Folded(std::string_view word) {
  std::string folded;
  for (const char c : word) {
    if (absl::ascii_isupper(c) && !folded.empty() && folded.back() != '_') folded += '_';
    folded += c == '-' ? '_' : absl::ascii_tolower(c);
  }
  return folded;
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > kLongestWord || b.size() > kLongestWord) return limit + 1;
  // Optimal string alignment over three rolling rows.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({substitution, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return std::min(last[b.size()], limit + 1);
}

std::string Nearest(std::string_view typed, std::span<const std::string> words) {
  const std::string meant = Folded(typed);
  size_t best = std::max<size_t>(1, meant.size() / 3) + 1;
  std::string nearest;
  for (const std::string& word : words) {
    const size_t distance = EditDistance(meant, Folded(word), best);
    if (distance >= best) continue;
    best = distance;
    nearest = word;
  }
  return nearest;
}

}  // namespace mega
