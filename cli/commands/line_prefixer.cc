#include "cli/commands/line_prefixer.h"

#include "fmt/core.h"

namespace mega::cli {
namespace {
constexpr size_t kLongestLine = 64 << 10;
}  // namespace

std::string LinePrefixer::Add(int64_t rank, std::string_view data) {
  if (!prefixed_) return std::string(data);
  std::string& partial = partial_[rank];
  std::string out;
  while (!data.empty()) {
    const size_t end = data.find('\n');
    const bool whole = end != std::string_view::npos;
    partial.append(data.substr(0, whole ? end : data.size()));
    data.remove_prefix(whole ? end + 1 : data.size());
    if (!whole && partial.size() < kLongestLine) break;
    out += fmt::format("rank {} | {}\n", rank, partial);
    partial.clear();
  }
  return out;
}

std::string LinePrefixer::Flush() {
  std::string out;
  for (auto& [rank, partial] : partial_) {
    if (!partial.empty()) out += fmt::format("rank {} | {}\n", rank, partial);
    partial.clear();
  }
  return out;
}

}  // namespace mega::cli
