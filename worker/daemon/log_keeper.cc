#include "worker/daemon/log_keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/unique_fd.h"
#include "worker/daemon/state_dir.h"

namespace mega::daemon {
namespace {

// Calls `visit` with the descriptor of a folder and each name in it. The last part of `path` is no
// link, or there is nothing.
void ForEachIn(int parent, const std::string& path,
               const std::function<void(int folder, const std::string& name)>& visit) {
  const int fd = openat(parent, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(fd), closedir);
  if (!entries) {
    close(fd);
    return;
  }
  while (const dirent* entry = readdir(entries.get())) visit(dirfd(entries.get()), entry->d_name);
}

void ForEachLog(int jobs, const std::string& job_uid,
                const std::function<void(int, const std::string&, const struct stat&)>& visit) {
  ForEachIn(jobs, job_uid, [&](int folder, const std::string& name) {
    struct stat info {};
    if (!IsLogName(name) || fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (S_ISREG(info.st_mode)) visit(folder, name, info);
  });
}

size_t SkipDigits(const std::string& text, size_t at) {
  return std::min(text.find_first_not_of("0123456789", at), text.size());
}

}  // namespace

bool IsLogName(const std::string& name) {
  size_t at = 0;
  for (const std::string part : {"a", "-r"}) {
    if (name.compare(at, part.size(), part) != 0) return false;
    const size_t digits = at + part.size();
    at = SkipDigits(name, digits);
    if (at == digits) return false;
  }
  if (name.compare(at, 4, ".log") != 0) return false;
  at += 4;
  if (at == name.size()) return true;
  return name[at] == '.' && at + 1 < name.size() && SkipDigits(name, at + 1) == name.size();
}

std::vector<JobLogs> ListLogs(const std::string& state_dir) {
  std::vector<JobLogs> all;
  ForEachIn(AT_FDCWD, state_dir + "/jobs", [&](int jobs, const std::string& uid) {
    if (!IsPlainName(uid)) return;
    JobLogs logs{.job_uid = uid, .written = absl::InfinitePast()};
    ForEachLog(jobs, uid, [&](int, const std::string&, const struct stat& info) {
      logs.bytes += info.st_size;
      logs.written = std::max(logs.written, absl::TimeFromTimespec(info.st_mtim));
    });
    if (logs.written != absl::InfinitePast()) all.push_back(std::move(logs));
  });
  return all;
}

std::vector<JobLogs> LogsBeyond(std::vector<JobLogs> logs, const std::set<std::string>& live,
                                const LogLimits& limits) {
  int64_t bytes = 0;
  int64_t jobs = 0;
  std::vector<JobLogs> ended;
  for (JobLogs& one : logs) {
    if (live.contains(one.job_uid)) {
      bytes += one.bytes;
      ++jobs;
    } else {
      ended.push_back(std::move(one));
    }
  }
  std::sort(ended.begin(), ended.end(),
            [](const JobLogs& a, const JobLogs& b) { return a.written > b.written; });
  std::vector<JobLogs> beyond;
  for (size_t i = 0; i < ended.size(); ++i) {
    const bool fits = bytes + ended[i].bytes <= limits.bytes && jobs < limits.jobs;
    if (i > 0 && (!fits || !beyond.empty())) {
      beyond.push_back(std::move(ended[i]));
      continue;
    }
    bytes += ended[i].bytes;
    ++jobs;
  }
  std::reverse(beyond.begin(), beyond.end());
  return beyond;
}

int64_t RemoveLogs(const std::string& state_dir, const std::string& job_uid) {
  if (!IsPlainName(job_uid)) return 0;
  const std::string path = state_dir + "/jobs";
  UniqueFd jobs(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!jobs) return 0;
  int64_t freed = 0;
  ForEachLog(jobs.get(), job_uid, [&](int folder, const std::string& name, const auto& info) {
    if (unlinkat(folder, name.c_str(), 0) == 0) freed += info.st_size;
  });
  (void)unlinkat(jobs.get(), job_uid.c_str(), AT_REMOVEDIR);  // unless something else is in it
  return freed;
}

}  // namespace mega::daemon
