// Waits for descriptors of which there may be many, and for another thread's word.
#pragma once

#include <chrono>
#include <vector>

#include "base/unique_fd.h"

namespace mega::daemon {

class Poller {
 public:
  Poller();

  // From any thread. `fd` stays the caller's; one that is closed is removed.
  void Add(int fd);
  void Remove(int fd);
  void Wake();  // the wait under way, or the next one, is over

  // Those that are readable or at their end; none after `wait` or a Wake. From one thread.
  std::vector<int> Wait(std::chrono::nanoseconds wait);

 private:
  UniqueFd epoll_;
  UniqueFd wake_;
};

}  // namespace mega::daemon
