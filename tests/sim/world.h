// Virtual time and chance. One thread, one queue of things to come, one seeded generator: the same
// seed gives the same run, event by event.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "fmt/core.h"

namespace mega::sim {

// SplitMix64: short, and the same numbers with every library.
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [0, n).
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  bool Chance(double p) { return Unit() < p; }
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    return low + (high - low) * Unit();
  }

 private:
  uint64_t state_;
};

class World {
 public:
  World(uint64_t seed, bool is_traced) : rng(seed), is_traced_(is_traced) {}

  Rng rng;
  absl::Duration now() const { return now_; }

  void At(absl::Duration time, std::function<void()> what) {
    queue_.push({std::max(time, now_), next_++, std::move(what)});
  }
  void After(absl::Duration span, std::function<void()> what) { At(now_ + span, std::move(what)); }

  // Runs until `end`, or until something failed, or until `is_done` says so.
  void RunUntil(
      absl::Duration end, const std::function<bool()>& is_done = [] { return false; }) {
    while (!failure_ && !queue_.empty() && queue_.top().time <= end && !is_done()) {
      auto what = std::move(const_cast<Entry&>(queue_.top()).what);
      now_ = queue_.top().time;
      queue_.pop();
      ++events_;
      what();
    }
    if (!failure_ && !is_done()) now_ = std::max(now_, end);
  }

  // The first failure ends the run.
  template <typename... Args>
  void Fail(fmt::format_string<Args...> format, Args&&... args) {
    if (failure_) return;
    failure_ = fmt::format(format, std::forward<Args>(args)...);
    Trace("FAILED: {}", *failure_);
  }
  const std::optional<std::string>& failure() const { return failure_; }
  int64_t events() const { return events_; }

  template <typename... Args>
  void Trace(fmt::format_string<Args...> format, Args&&... args) {
    if (!is_traced_) return;
    trace_.push_back(fmt::format("{:10.4f} ", absl::ToDoubleSeconds(now_)) +
                     fmt::format(format, std::forward<Args>(args)...));
  }
  const std::vector<std::string>& trace() const { return trace_; }
  bool is_traced() const { return is_traced_; }

 private:
  struct Entry {
    absl::Duration time;
    int64_t order;
    std::function<void()> what;
    bool operator<(const Entry& other) const {
      return std::pair(time, order) > std::pair(other.time, other.order);  // earliest on top
    }
  };

  absl::Duration now_;
  int64_t next_ = 0;
  int64_t events_ = 0;
  std::priority_queue<Entry> queue_;
  std::optional<std::string> failure_;
  const bool is_traced_;
  std::vector<std::string> trace_;
};

}  // namespace mega::sim
