// Step reports that wait for the coordinator: in order of arrival, bounded, kept until confirmed.
// When full, the oldest of ranks other than 0 go first: rank 0 tells the job's story.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "mega/v1/telemetry.pb.h"
#include "worker/daemon/rank_key.h"

namespace mega::daemon {

class ReportBuffer {
 public:
  explicit ReportBuffer(size_t capacity) : capacity_(capacity) {}

  void Add(const RankKey& key, v1::StepReport report);

  // The oldest report not yet sent, marked as sent; null when there is none. Valid until the next
  // call.
  const v1::StepReport* TakeUnsent();
  bool HasUnsent() const;

  // Where sending stands: everything taken so far has a number ≤ this.
  uint64_t sent() const { return sent_; }
  // The coordinator has all reports up to this number: drops them.
  void Confirm(uint64_t up_to);
  // What was sent and not confirmed is to be sent again.
  void Rewind() { sent_ = confirmed_; }

  size_t size() const { return first_rank_.size() + others_.size(); }
  // Of this rank, not confirmed.
  int64_t Pending(const RankKey& key) const;
  int64_t dropped() const { return dropped_; }

 private:
  struct Entry {
    uint64_t number;
    RankKey key;
    v1::StepReport report;
  };
  using Entries = std::deque<Entry>;  // ascending numbers

  static Entries::const_iterator FirstAfter(const Entries& entries, uint64_t number);
  void PopFront(Entries& entries);

  const size_t capacity_;
  Entries first_rank_;
  Entries others_;
  std::map<RankKey, int64_t> pending_;
  uint64_t next_ = 1;
  uint64_t sent_ = 0;
  uint64_t confirmed_ = 0;
  int64_t dropped_ = 0;
};

}  // namespace mega::daemon
