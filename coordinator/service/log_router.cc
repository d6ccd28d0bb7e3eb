#include "coordinator/service/log_router.h"

#include <algorithm>
#include <utility>

#include "coordinator/service/random_id.h"

namespace mega::service {
namespace {

constexpr int64_t kBufferBytes = 1 << 20;
constexpr int64_t kItemBytes = sizeof(LogBuffer::Item);
constexpr absl::Duration kStuck = absl::Seconds(10);
constexpr size_t kMostParked = 1 << 20;  // each open PushLogs stream parks once at most

}  // namespace

int64_t LogBuffer::Item::bytes() const {
  return kItemBytes + static_cast<int64_t>(chunk.ByteSizeLong());
}

void LogBuffer::ResumeParked() {
  for (auto& go_on : std::exchange(parked_, {})) resumer_.Post(std::move(go_on));
}

bool LogBuffer::Pop(Item& item) {
  MutexLock lock(mu_);
  if (items_.empty()) return false;
  item = std::move(items_.front());
  items_.pop_front();
  bytes_ -= item.bytes();
  if (bytes_ < kBufferBytes / 2) ResumeParked();
  return true;
}

bool LogBuffer::cut() const {
  MutexLock lock(mu_);
  return cut_;
}

void LogBuffer::Shut() {
  MutexLock lock(mu_);
  shut_ = true;
  items_.clear();
  bytes_ = 0;
  ResumeParked();
}

bool LogBuffer::Push(Item item, std::function<void()> go_on, absl::Duration now) {
  {
    MutexLock lock(mu_);
    if (shut_ || cut_) return true;
    const auto is_same_break = [&](const Item& other) {
      return other.broken && other.chunk.stream_id() == item.chunk.stream_id();
    };
    if (item.broken && std::ranges::any_of(items_, is_same_break)) return true;
    if (bytes_ >= kBufferBytes && !item.broken) {
      if (parked_.empty()) parked_since_ = now;
      parked_.push_back(std::move(go_on));
      return false;
    }
    bytes_ += item.bytes();
    items_.push_back(std::move(item));
  }
  wake_();
  return true;
}

void LogBuffer::CutIfStuck(absl::Duration now) {
  MutexLock lock(mu_);
  if (parked_.empty() || now - parked_since_ < kStuck) return;
  cut_ = true;
  items_.clear();
  bytes_ = 0;
  ResumeParked();
}

LogRouter::LogRouter(const Clock& clock) : clock_(clock), resumer_(kMostParked) {}

std::shared_ptr<LogBuffer> LogRouter::NewBuffer(std::function<void()> wake) {
  return std::make_shared<LogBuffer>(resumer_, std::move(wake));
}

std::string LogRouter::Open(std::shared_ptr<LogBuffer> buffer) {
  MutexLock lock(mu_);
  std::string id = NewSecretId();
  buffers_[id] = std::move(buffer);
  return id;
}

void LogRouter::Close(const std::string& stream_id) {
  MutexLock lock(mu_);
  buffers_.erase(stream_id);
}

std::shared_ptr<LogBuffer> LogRouter::Find(const std::string& stream_id) const {
  MutexLock lock(mu_);
  const auto it = buffers_.find(stream_id);
  return it == buffers_.end() ? nullptr : it->second;
}

LogRouter::Delivery LogRouter::Deliver(const v1::LogChunk& chunk, std::function<void()> go_on) {
  const auto buffer = Find(chunk.stream_id());
  if (buffer == nullptr) return Delivery::kUnknown;
  return buffer->Push({chunk, false}, std::move(go_on), clock_.BootNow()) ? Delivery::kTaken
                                                                          : Delivery::kWait;
}

void LogRouter::Broken(const std::string& stream_id) {
  const auto buffer = Find(stream_id);
  if (buffer == nullptr) return;
  LogBuffer::Item item;
  item.chunk.set_stream_id(stream_id);
  item.broken = true;
  buffer->Push(std::move(item), nullptr, clock_.BootNow());
}

void LogRouter::Tick() {
  std::vector<std::shared_ptr<LogBuffer>> buffers;
  {
    MutexLock lock(mu_);
    for (const auto& [id, buffer] : buffers_) buffers.push_back(buffer);
  }
  for (const auto& buffer : buffers) buffer->CutIfStuck(clock_.BootNow());
}

}  // namespace mega::service
