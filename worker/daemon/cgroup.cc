#include "worker/daemon/cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "base/folder.h"
#include "base/log.h"
#include "fmt/core.h"
#include "worker/daemon/state_dir.h"

namespace mega::daemon {
namespace {

namespace fs = std::filesystem;

std::string MountOfVersionTwo() {
  std::ifstream mounts("/proc/self/mounts");
  std::string line;
  while (std::getline(mounts, line)) {
    std::istringstream fields(line);
    std::string device, folder, type;
    fields >> device >> folder >> type;
    if (type == "cgroup2") return folder;
  }
  return "";
}

// "0::/system.slice/mega-worker.service"
std::string OwnPath() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return "";
}

bool WriteTo(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.flush();
  return out.good();
}

}  // namespace

std::string CgroupName(const std::string& state_folder_id, int64_t incarnation) {
  return fmt::format("mega-worker-{}-{}", state_folder_id, incarnation);
}

int RemoveDeadGroups(const std::string& folder, const std::string& state_folder_id,
                     int64_t incarnation) {
  const std::string prefix = fmt::format("mega-worker-{}-", state_folder_id);
  int removed = 0;
  const auto groups = ListFolder(folder);
  if (!groups.ok()) return 0;
  std::error_code error;
  for (const fs::directory_entry& group : *groups) {
    const std::string name = group.path().filename().string();
    int64_t of = 0;
    if (!name.starts_with(prefix) || !absl::SimpleAtoi(name.substr(prefix.size()), &of) ||
        of == incarnation || !fs::is_directory(group.symlink_status(error))) {
      continue;
    }
    // The kernel refuses to remove a group in which a process is left.
    const auto ranks = ListFolder(group.path());
    if (!ranks.ok()) continue;
    for (const fs::directory_entry& rank : *ranks) rmdir(rank.path().c_str());
    if (rmdir(group.path().c_str()) == 0) ++removed;
  }
  return removed;
}

std::unique_ptr<CgroupParent> CgroupParent::Detect(const std::string& state_folder_id,
                                                   int64_t incarnation) {
  if (!IsPlainName(state_folder_id)) return nullptr;
  const std::string mount = MountOfVersionTwo();
  std::string own = OwnPath();
  if (mount.empty() || own.empty()) return nullptr;
  if (own == "/") own.clear();
  const std::string folder = mount + own;
  if (const int removed = RemoveDeadGroups(folder, state_folder_id, incarnation); removed > 0) {
    log::Info("removed cgroups of earlier workers", {{"groups", removed}});
  }
  std::string path = fmt::format("{}/{}", folder, CgroupName(state_folder_id, incarnation));
  if (mkdir(path.c_str(), 0755) != 0) return nullptr;
  auto parent = std::unique_ptr<CgroupParent>(new CgroupParent(std::move(path)));
  if (access((parent->path_ + "/cgroup.kill").c_str(), W_OK) != 0) return nullptr;
  return parent;
}

CgroupParent::~CgroupParent() { rmdir(path_.c_str()); }

std::unique_ptr<Cgroup> CgroupParent::Make(const std::string& name) const {
  std::string path = path_ + "/" + name;
  if (mkdir(path.c_str(), 0755) != 0) return nullptr;
  return std::unique_ptr<Cgroup>(new Cgroup(std::move(path)));
}

bool Cgroup::Enter(pid_t pid) const {
  return WriteTo(path_ + "/cgroup.procs", fmt::format("{}", pid));
}

void Cgroup::Kill() const { WriteTo(path_ + "/cgroup.kill", "1"); }

Cgroup::~Cgroup() {
  Kill();
  rmdir(path_.c_str());  // fails while a killed process is not yet gone; an empty group is harmless
}

}  // namespace mega::daemon
