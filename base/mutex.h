// std::mutex with the attributes that clang's -Wthread-safety checks. Not absl::Mutex: Debian's
// build of it is not instrumented and gives false races under TSan.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define MEGA_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define MEGA_THREAD_ANNOTATION(x)
#endif
#define MEGA_CAPABILITY(x) MEGA_THREAD_ANNOTATION(capability(x))
#define MEGA_SCOPED_CAPABILITY MEGA_THREAD_ANNOTATION(scoped_lockable)
#define MEGA_GUARDED_BY(x) MEGA_THREAD_ANNOTATION(guarded_by(x))
#define MEGA_REQUIRES(...) MEGA_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define MEGA_ACQUIRE(...) MEGA_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define MEGA_RELEASE(...) MEGA_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define MEGA_EXCLUDES(...) MEGA_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define MEGA_NO_THREAD_SAFETY_ANALYSIS MEGA_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace mega {

class MEGA_CAPABILITY("mutex") Mutex {
 public:
  void Lock() MEGA_ACQUIRE() { mu_.lock(); }
  void Unlock() MEGA_RELEASE() { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class MEGA_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mu) MEGA_ACQUIRE(mu) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() MEGA_RELEASE() { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// Every wait has a deadline.
class CondVar {
 public:
  // False when the deadline came first. The caller loops over its condition.
  bool WaitUntil(Mutex& mu, std::chrono::steady_clock::time_point deadline) MEGA_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const bool in_time = cv_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  bool WaitFor(Mutex& mu, std::chrono::nanoseconds span) MEGA_REQUIRES(mu) {
    return WaitUntil(mu, std::chrono::steady_clock::now() + span);
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace mega
