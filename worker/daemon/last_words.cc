#include "worker/daemon/last_words.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "base/printable.h"
#include "fmt/format.h"

namespace mega::daemon {
namespace {
constexpr size_t kMaxMessage = 4096;  // the tail of stderr says more
constexpr size_t kLines = 3;
constexpr size_t kBytes = 1024;
}  // namespace

std::string LastLines(std::string_view text) {
  std::vector<std::string_view> lines;  // the newest first
  size_t bytes = 0;
  while (!text.empty() && lines.size() < kLines && bytes < kBytes) {
    const size_t begin = text.rfind('\n') + 1;  // npos + 1 is 0
    const std::string_view whole = text.substr(begin);
    const std::string_view line = whole.substr(0, whole.find_last_not_of(" \t\r") + 1);
    text = text.substr(0, begin == 0 ? 0 : begin - 1);
    if (line.empty() || log::IsRoutine(line)) continue;
    lines.push_back(line.substr(line.size() - std::min(line.size(), kBytes - bytes)));
    bytes += lines.back().size();
  }
  std::ranges::reverse(lines);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string Shortened(const std::string& message) {
  return message.size() > kMaxMessage ? Printable(message.substr(0, kMaxMessage)) : message;
}

}  // namespace mega::daemon
