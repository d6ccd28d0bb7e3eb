// cgroup v2, where this process may make groups: one kill then reaches every descendant of a rank,
// even one that left its session. Everything works without it.
#pragma once

#include <sys/types.h>

#include <cstdint>
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
  // Removes what workers before this one, of the same state folder, left empty: as that folder is
  // locked, none of them lives.
  static std::unique_ptr<CgroupParent> Detect(const std::string& state_folder_id,
                                              int64_t incarnation);
  ~CgroupParent();
  CgroupParent(const CgroupParent&) = delete;
  CgroupParent& operator=(const CgroupParent&) = delete;

  std::unique_ptr<Cgroup> Make(const std::string& name) const;  // null on failure

 private:
  explicit CgroupParent(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

// "mega-worker-<state folder>-<incarnation>"
std::string CgroupName(const std::string& state_folder_id, int64_t incarnation);

// Removes in `folder` the groups of other incarnations of that state folder, with the groups in
// them, where no process is left. Returns how many.
int RemoveDeadGroups(const std::string& folder, const std::string& state_folder_id,
                     int64_t incarnation);

}  // namespace mega::daemon
