#include "worker/daemon/cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "fmt/core.h"

namespace mega::daemon {
namespace {

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

std::unique_ptr<CgroupParent> CgroupParent::Detect(const std::string& unique_name) {
  const std::string mount = MountOfVersionTwo();
  std::string own = OwnPath();
  if (mount.empty() || own.empty()) return nullptr;
  if (own == "/") own.clear();
  std::string path = fmt::format("{}{}/{}", mount, own, unique_name);
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
