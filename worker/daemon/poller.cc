#include "worker/daemon/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace mega::daemon {

Poller::Poller()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MEGA_CHECK(epoll_ && wake_);
  Add(wake_.get());
}

void Poller::Add(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Poller::Remove(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Poller::Wake() {
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof(one)) < 0) return;  // full: it is awake already
}

std::vector<int> Poller::Wait(std::chrono::nanoseconds wait) {
  const auto span = std::chrono::ceil<std::chrono::milliseconds>(wait);
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64,
                               static_cast<int>(std::clamp<int64_t>(span.count(), 0, INT32_MAX)));
  std::vector<int> ready;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.fd != wake_.get()) {
      ready.push_back(events[i].data.fd);
      continue;
    }
    uint64_t words;
    while (read(wake_.get(), &words, sizeof(words)) > 0) {
    }
  }
  return ready;
}

}  // namespace mega::daemon
