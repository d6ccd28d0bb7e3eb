// Brings log chunks that workers push to the streams that asked for them. Each stream of a client
// has one bounded buffer: all that a chunk holds counts, and that it is one. While it is full the
// worker's stream waits, and a reader that takes nothing for ten seconds is cut, so that it delays
// nobody else's logs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/service/work_thread.h"
#include "mega/v1/telemetry.pb.h"

namespace mega::service {

// What one client reads: chunks of all its ranks, in the order in which they came.
class LogBuffer {
 public:
  // `wake` is called after each delivery, with no lock of the buffer's held. Workers go on through
  // `resumer`: never inside Pop, whose caller may hold what the delivery needs.
  LogBuffer(WorkThread& resumer, std::function<void()> wake)
      : resumer_(resumer), wake_(std::move(wake)) {}

  struct Item {
    v1::LogChunk chunk;
    bool broken = false;  // the worker's stream ended before `end`; only stream_id is set
    int64_t bytes() const;
  };
  // False: empty. Lets a waiting worker go on.
  bool Pop(Item& item);
  // The reader was cut: it took nothing for too long.
  bool cut() const;
  // No wake-up and no delivery after this; waiting workers go on.
  void Shut();

 private:
  friend class LogRouter;
  // False: full. Then `go_on` is called once, when there is room or the buffer was shut. A stream's
  // break always has room, once.
  bool Push(Item item, std::function<void()> go_on, absl::Duration now);
  void CutIfStuck(absl::Duration now);
  void ResumeParked() MEGA_REQUIRES(mu_);

  WorkThread& resumer_;
  const std::function<void()> wake_;
  mutable Mutex mu_;
  std::deque<Item> items_ MEGA_GUARDED_BY(mu_);
  int64_t bytes_ MEGA_GUARDED_BY(mu_) = 0;
  bool shut_ MEGA_GUARDED_BY(mu_) = false;
  bool cut_ MEGA_GUARDED_BY(mu_) = false;
  std::vector<std::function<void()>> parked_ MEGA_GUARDED_BY(mu_);
  absl::Duration parked_since_ MEGA_GUARDED_BY(mu_);
};

class LogRouter {
 public:
  explicit LogRouter(const Clock& clock);

  std::shared_ptr<LogBuffer> NewBuffer(std::function<void()> wake);
  // A new id under which a worker may answer. Nobody can guess it, so only the worker
  // that was asked answers.
  std::string Open(std::shared_ptr<LogBuffer> buffer);
  void Close(const std::string& stream_id);

  enum class Delivery { kTaken, kWait, kUnknown };
  // kWait: the chunk was not taken; deliver it again once `go_on` was called.
  Delivery Deliver(const v1::LogChunk& chunk, std::function<void()> go_on);
  // The stream that carried these ids ended.
  void Broken(const std::string& stream_id);
  // Every now and then: cuts readers that are stuck.
  void Tick();

 private:
  std::shared_ptr<LogBuffer> Find(const std::string& stream_id) const;

  const Clock& clock_;
  mutable Mutex mu_;
  std::map<std::string, std::shared_ptr<LogBuffer>> buffers_ MEGA_GUARDED_BY(mu_);
  WorkThread resumer_;
};

}  // namespace mega::service
