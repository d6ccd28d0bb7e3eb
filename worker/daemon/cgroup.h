// cgroup v2, where this process may make groups: one kill then reaches every descendant of a rank,
// even one that left its session. Everything works without it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

namespace mega::daemon {

class CgroupParent;

// One rank's group; removed with the object.
class Cgroup {
 public:
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  bool Enter(pid_t pid) const;
  void Kill() const;

 private:
  friend class CgroupParent;
  explicit Cgroup(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

class CgroupParent {
 public:
  // Null where cgroup v2 is not mounted, not writable, or older than cgroup.kill (Linux 5.14).
  static std::unique_ptr<CgroupParent> Detect(const std::string& unique_name);
  ~CgroupParent();
  CgroupParent(const CgroupParent&) = delete;
  CgroupParent& operator=(const CgroupParent&) = delete;

  std::unique_ptr<Cgroup> Make(const std::string& name) const;  // null on failure

 private:
  explicit CgroupParent(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

}  // namespace mega::daemon
