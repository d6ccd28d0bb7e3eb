#include "worker/daemon/report_buffer.h"

#include <algorithm>

namespace mega::daemon {

void ReportBuffer::Add(const RankKey& key, v1::StepReport report) {
  if (size() >= capacity_) {
    PopFront(others_.empty() ? first_rank_ : others_);
    ++dropped_;
  }
  Entries& entries = key.rank == 0 ? first_rank_ : others_;
  entries.push_back({next_++, key, std::move(report)});
  ++pending_[key];
}

ReportBuffer::Entries::const_iterator ReportBuffer::FirstAfter(const Entries& entries,
                                                               uint64_t number) {
  return std::upper_bound(entries.begin(), entries.end(), number,
                          [](uint64_t n, const Entry& entry) { return n < entry.number; });
}

void ReportBuffer::PopFront(Entries& entries) {
  const auto pending = pending_.find(entries.front().key);
  if (--pending->second == 0) pending_.erase(pending);
  entries.pop_front();
}

const v1::StepReport* ReportBuffer::TakeUnsent() {
  const auto first = FirstAfter(first_rank_, sent_);
  const auto other = FirstAfter(others_, sent_);
  const bool has_first = first != first_rank_.end();
  const bool has_other = other != others_.end();
  if (!has_first && !has_other) return nullptr;
  const Entry& next = !has_other || (has_first && first->number < other->number) ? *first : *other;
  sent_ = next.number;
  return &next.report;
}

bool ReportBuffer::HasUnsent() const {
  return (!first_rank_.empty() && first_rank_.back().number > sent_) ||
         (!others_.empty() && others_.back().number > sent_);
}

void ReportBuffer::Confirm(uint64_t up_to) {
  confirmed_ = std::max(confirmed_, up_to);
  for (Entries* entries : {&first_rank_, &others_}) {
    while (!entries->empty() && entries->front().number <= up_to) PopFront(*entries);
  }
}

int64_t ReportBuffer::Pending(const RankKey& key) const {
  const auto it = pending_.find(key);
  return it == pending_.end() ? 0 : it->second;
}

}  // namespace mega::daemon
