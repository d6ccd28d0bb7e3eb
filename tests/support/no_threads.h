// A machine that gives no more threads.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "base/check.h"

namespace mega::testing {

// While it lives, no thread of this process can be started: each would get a stack larger than the
// address space.
class NoThreads {
 public:
  NoThreads() {
    MEGA_CHECK_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t none;
    MEGA_CHECK_EQ(pthread_attr_init(&none), 0);
    MEGA_CHECK_EQ(pthread_attr_setstacksize(&none, size_t{1} << 47), 0);
    MEGA_CHECK_EQ(pthread_setattr_default_np(&none), 0);
    pthread_attr_destroy(&none);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace mega::testing
