#include "worker/daemon/supervisor.h"

#include <signal.h>

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "base/proc_stat.h"

namespace mega::daemon {

Supervisor::Supervisor(Options options, OnExit on_exit)
    : options_(options), on_exit_(std::move(on_exit)), thread_([this] { Run(); }) {}

Supervisor::~Supervisor() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  poller_.Wake();
  thread_.join();
  MutexLock lock(mu_);
  children_.clear();  // ~Process kills and reaps
}

void Supervisor::Add(const RankKey& key, std::unique_ptr<Process> process) {
  Child child;
  if (options_.cgroups != nullptr) {
    child.cgroup =
        options_.cgroups->Make(fmt::format("{}-e{}-r{}", key.job_uid, key.epoch, key.rank));
    if (child.cgroup && !child.cgroup->Enter(process->pid())) child.cgroup.reset();
  }
  child.process = std::move(process);
  MutexLock lock(mu_);
  poller_.Add(child.process->pidfd());
  children_[key] = std::move(child);
}

absl::Status Supervisor::Release(const RankKey& key, const std::function<bool()>& allowed) {
  std::shared_ptr<Process> process;
  {
    MutexLock lock(mu_);
    const auto it = children_.find(key);
    if (it == children_.end()) return absl::OkStatus();  // killed at the gate; its exit is reported
    if (!allowed()) {
      Kill(it->first, it->second);
      poller_.Wake();
      return FailedPrecondition("rank {} may not start: the lease is over", key.Text());
    }
    process = it->second.process;
  }
  // Outside the lock: executing a program from a slow disk takes its time. A KillAll meanwhile
  // signals the child wherever it is.
  return process->Release();
}

void Supervisor::Kill(const RankKey& key, Child& child) {
  child.by_worker = true;
  child.kill_at.reset();
  if (!child.complain_at) {
    child.complain_at =
        std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(options_.kill_wait);
  }
  child.process->Signal(SIGKILL);
  if (child.cgroup) child.cgroup->Kill();
}

void Supervisor::Stop(const RankKey& key, absl::Duration grace) {
  MutexLock lock(mu_);
  const auto it = children_.find(key);
  if (it == children_.end()) return;
  Child& child = it->second;
  if (grace <= absl::ZeroDuration()) {
    Kill(key, child);
  } else {
    const Time kill_at = std::chrono::steady_clock::now() +
                         absl::ToChronoNanoseconds(std::min(grace, absl::Hours(1)));
    child.kill_at = std::min(kill_at, child.kill_at.value_or(kill_at));
    child.by_worker = true;
    child.process->Signal(SIGTERM);
  }
  poller_.Wake();
}

void Supervisor::KillAll() {
  MutexLock lock(mu_);
  if (children_.empty()) return;
  for (auto& [key, child] : children_) Kill(key, child);
  poller_.Wake();
}

int Supervisor::unkillable() const {
  MutexLock lock(mu_);
  return static_cast<int>(std::count_if(children_.begin(), children_.end(),
                                        [](const auto& entry) { return entry.second.unkillable; }));
}

Supervisor::Time Supervisor::ServeTimers() {
  const Time now = std::chrono::steady_clock::now();
  Time next = now + std::chrono::seconds(60);
  for (auto& [key, child] : children_) {
    if (child.kill_at && *child.kill_at <= now) Kill(key, child);
    if (child.complain_at && !child.unkillable && *child.complain_at <= now) {
      child.unkillable = true;
      log::Error("rank does not die of SIGKILL; its device stays taken until it does",
                 {{"rank", key.Text()},
                  {"pid", child.process->pid()},
                  {"state", std::string(1, ProcessState(child.process->pid()))}});
    }
    if (child.kill_at) next = std::min(next, *child.kill_at);
    if (child.complain_at && !child.unkillable) next = std::min(next, *child.complain_at);
  }
  return next;
}

void Supervisor::ReapEnded() {
  struct Ended {
    RankKey key;
    ProcessExit exit;
    bool by_worker;
    Child child;  // destroyed outside the lock
  };
  std::vector<Ended> ended;
  {
    MutexLock lock(mu_);
    for (auto it = children_.begin(); it != children_.end();) {
      const std::optional<ProcessExit> exit = it->second.process->Reap();
      if (!exit) {
        ++it;
        continue;
      }
      poller_.Remove(it->second.process->pidfd());
      ended.push_back({it->first, *exit, it->second.by_worker, std::move(it->second)});
      it = children_.erase(it);
    }
  }
  for (const Ended& e : ended) on_exit_(e.key, e.exit, e.by_worker);
}

void Supervisor::Run() {
  while (true) {
    Time next;
    {
      MutexLock lock(mu_);
      if (stopping_) return;
      next = ServeTimers();
    }
    (void)poller_.Wait(next - std::chrono::steady_clock::now());
    ReapEnded();
  }
}

}  // namespace mega::daemon
