#include "base/proc_stat.h"

#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fmt/core.h"

namespace mega {
namespace {

// Fields are counted from 1: pid, (name), state …
constexpr size_t kFirstAfterName = 3;
constexpr size_t kStartTime = 22;

std::optional<ProcStat> Read(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  return ParseProcStat(line);
}

}  // namespace

std::optional<ProcStat> ParseProcStat(std::string_view line) {
  // The name itself may hold blanks and brackets.
  const size_t open = line.find('(');
  const size_t close = line.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  const std::vector<std::string> fields =
      absl::StrSplit(std::string(line.substr(close + 1)), ' ', absl::SkipEmpty());
  ProcStat stat{.name = std::string(line.substr(open + 1, close - open - 1))};
  if (fields.size() <= kStartTime - kFirstAfterName || fields.front().size() != 1 ||
      !absl::SimpleAtoi(fields[kStartTime - kFirstAfterName], &stat.start_time_ticks)) {
    return std::nullopt;
  }
  stat.state = fields.front().front();
  return stat;
}

int64_t StartTimeTicks(pid_t pid) {
  const std::optional<ProcStat> stat = Read(pid);
  return stat ? stat->start_time_ticks : 0;
}

char ProcessState(pid_t pid) {
  const std::optional<ProcStat> stat = Read(pid);
  return stat ? stat->state : 0;
}

}  // namespace mega
