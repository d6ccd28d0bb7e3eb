#include "worker/daemon/probes/checks.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/disk_space.h"
#include "base/folder.h"
#include "base/proc_stat.h"
#include "fmt/core.h"
#include "worker/daemon/node_probe.h"

namespace mega::daemon {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;
// A checkpoint that does not fit is lost; logs and worker.json need little.
constexpr int64_t kDiskError = 256 * kMiB;
constexpr int64_t kDiskWarning = 10 * kGiB;
constexpr double kDiskWarningShare = 0.05;
// Below it the kernel kills at any moment.
constexpr double kMemoryError = 0.01;
constexpr double kMemoryWarning = 0.05;
// Share of the last minute in which every process waited for memory.
constexpr double kPressureWarning = 20;
constexpr size_t kMostSamples = 64;
constexpr char kRootVariable[] = "MEGA_PROBE_ROOT";
constexpr char kPathsVariable[] = "MEGA_PROBE_PATHS";

void Add(ProbeAnswer& answer, v1::Severity severity, std::string message) {
  v1::Finding& finding = answer.findings.emplace_back();
  finding.set_severity(severity);
  finding.set_message(std::move(message));
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The nearest folder that exists: those of jobs to come do not yet.
std::string Existing(std::string path) {
  while (path.size() > 1 && access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    const size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos || slash == 0 ? 1 : slash);
  }
  return path;
}

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};
using Dir = std::unique_ptr<DIR, CloseDir>;

std::vector<std::string> EntriesOf(const std::string& path) {
  std::vector<std::string> names;
  const auto entries = ListFolder(path);
  if (!entries.ok()) return names;
  for (const auto& entry : *entries) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

ProbeAnswer CheckDisk(const ProbeInputs& inputs) {
  ProbeAnswer answer;
  for (const std::string& path : inputs.paths) {
    const std::optional<DiskSpace> disk = DiskSpaceAt(Existing(path));
    if (!disk.has_value()) continue;  // the mounts' business
    const int64_t total = disk->total_bytes;
    const int64_t free = disk->free_bytes;
    if (disk->is_read_only) {
      Add(answer, v1::SEVERITY_ERROR,
          fmt::format("{} is on a file system that is mounted read-only; see the kernel's log, and "
                      "mount it again",
                      path));
    } else if (total > 0 && free < std::min(kDiskError, total / 20)) {
      Add(answer, v1::SEVERITY_ERROR,
          fmt::format("{} has {} MiB free of {} MiB; a checkpoint will not fit: remove what is not "
                      "needed",
                      path, free / kMiB, total / kMiB));
    } else if (disk->total_files > 0 && disk->free_files == 0) {
      Add(answer, v1::SEVERITY_ERROR,
          fmt::format("{} takes no more files (of {}); remove small ones", path,
                      disk->total_files));
    } else if (free < kDiskWarning &&
               static_cast<double>(free) < kDiskWarningShare * static_cast<double>(total)) {
      Add(answer, v1::SEVERITY_WARNING,
          fmt::format("{} has {} MiB free of {} MiB", path, free / kMiB, total / kMiB));
    }
  }
  return answer;
}

ProbeAnswer CheckMounts(const ProbeInputs& inputs) {
  ProbeAnswer answer;
  for (const std::string& path : inputs.paths) {
    const std::string folder = Existing(path);
    const Dir dir(opendir(folder.c_str()));
    errno = dir ? 0 : errno;
    if (dir) (void)readdir(dir.get());
    if (errno == 0) continue;
    Add(answer, v1::SEVERITY_ERROR,
        fmt::format("{} cannot be read: {}; mount it again", folder, strerror(errno)));
  }
  return answer;
}

ProbeAnswer CheckMemory(const ProbeInputs& inputs) {
  ProbeAnswer answer;
  const MemInfo memory = ReadMemInfo(inputs.root);
  const double total = static_cast<double>(memory.total_bytes) / kMiB;
  const double available = static_cast<double>(memory.available_bytes) / kMiB;
  if (total > 0 && available >= 0 && available < kMemoryWarning * total) {
    Add(answer, available < kMemoryError * total ? v1::SEVERITY_ERROR : v1::SEVERITY_WARNING,
        fmt::format("{:.0f} MiB of {:.0f} MiB of memory are available; the kernel kills processes "
                    "when none is",
                    available, total));
  }
  // "full avg10=0.00 avg60=0.00 avg300=0.00 total=0"
  std::ifstream pressure(inputs.root + "/proc/pressure/memory");
  for (std::string line; std::getline(pressure, line);) {
    const size_t at = line.find("avg60=");
    double share = 0;
    if (!line.starts_with("full") || at == std::string::npos) continue;
    std::istringstream(line.substr(at + 6)) >> share;
    if (share < kPressureWarning) continue;
    Add(answer, v1::SEVERITY_WARNING,
        fmt::format("for {:.0f} % of the last minute every process waited for memory; fewer ranks, "
                    "or what else runs here",
                    share));
  }
  return answer;
}

ProbeAnswer CheckNic(const ProbeInputs& inputs) {
  ProbeAnswer answer;
  const std::string folder = inputs.root + "/sys/class/net/";
  for (const std::string& name : EntriesOf(folder)) {
    if (name == "lo" || answer.samples.size() >= kMostSamples) continue;
    int64_t errors = 0;
    for (const char* counter : {"rx_errors", "tx_errors", "rx_crc_errors", "tx_carrier_errors"}) {
      int64_t value = 0;
      if (absl::SimpleAtoi(FirstLine(folder + name + "/statistics/" + counter), &value)) {
        errors += value;
      }
    }
    answer.samples[name] = errors;
  }
  return answer;
}

ProbeAnswer CheckBlocked(const ProbeInputs& inputs) {
  ProbeAnswer answer;
  for (const std::string& pid : EntriesOf(inputs.root + "/proc")) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (answer.samples.size() >= kMostSamples) break;
    const std::optional<ProcStat> stat =
        ParseProcStat(FirstLine(inputs.root + "/proc/" + pid + "/stat"));
    if (!stat || stat->state != 'D') continue;
    std::string comm = stat->name;
    std::replace_if(
        comm.begin(), comm.end(), [](unsigned char c) { return c <= ' ' || c >= 0x7f; }, '_');
    answer.samples[fmt::format("{}/{}", pid, comm)] = stat->start_time_ticks;
  }
  return answer;
}

const std::vector<std::pair<std::string, Check>>& AllChecks() {
  static const auto* checks = new std::vector<std::pair<std::string, Check>>{
      {"mount", CheckMounts}, {"disk", CheckDisk},       {"memory", CheckMemory},
      {"nic", CheckNic},      {"d_state", CheckBlocked},
  };
  return *checks;
}

std::string ToText(const ProbeAnswer& answer) {
  std::string text;
  for (const v1::Finding& finding : answer.findings) {
    std::string message = finding.message();
    std::replace(message.begin(), message.end(), '\n', ' ');
    text += fmt::format("finding {} {}\n", static_cast<int>(finding.severity()), message);
  }
  for (const auto& [name, value] : answer.samples)
    text += fmt::format("sample {} {}\n", name, value);
  return text;
}

ProbeAnswer FromText(const std::string& text) {
  ProbeAnswer answer;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    if (words.size() != 3) continue;
    int severity = 0;
    int64_t value = 0;
    if (words[0] == "finding" && absl::SimpleAtoi(words[1], &severity) &&
        v1::Severity_IsValid(severity)) {
      Add(answer, static_cast<v1::Severity>(severity), words[2]);
    } else if (words[0] == "sample" && absl::SimpleAtoi(words[2], &value)) {
      answer.samples[words[1]] = value;
    }
  }
  return answer;
}

std::vector<std::string> CheckEnvironment(const ProbeInputs& inputs) {
  return {fmt::format("{}={}", kRootVariable, inputs.root),
          fmt::format("{}={}", kPathsVariable, absl::StrJoin(inputs.paths, "\n"))};
}

int RunCheck(const std::string& name) {
  ProbeInputs inputs;
  if (const char* root = getenv(kRootVariable)) inputs.root = root;
  if (const char* paths = getenv(kPathsVariable)) {
    inputs.paths = absl::StrSplit(paths, '\n', absl::SkipEmpty());
  }
  for (const auto& [known, check] : AllChecks()) {
    if (known != name) continue;
    const std::string text = ToText(check(inputs));
    fwrite(text.data(), 1, text.size(), stdout);
    return fflush(stdout) == 0 ? 0 : 1;
  }
  fmt::print(stderr, "there is no check '{}'\n", name);
  return 2;
}

}  // namespace mega::daemon
