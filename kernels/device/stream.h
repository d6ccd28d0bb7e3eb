// An in-order queue of work on one device, and points in it. Ops take a Stream and may return
// before the work is done; on the CPU they run at once in the calling thread (and its ParallelFor
// team), so Synchronize and Event waits return immediately. One thread uses a Stream at a time.
#pragma once

#include "kernels/device/device.h"

namespace mega::kernels {

class Event;

class Stream {
 public:
  // `threads` bounds the team of ParallelFor for ops on this stream; 0 = OMP's default.
  explicit Stream(Device device = {}, int threads = 0) : device_(device), threads_(threads) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const Device& device() const { return device_; }
  int threads() const { return threads_; }
  void Synchronize();
  // Work enqueued later runs after `event`.
  void Wait(const Event& event);

 private:
  Device device_;
  int threads_;
};

class Event {
 public:
  void Record(Stream& stream);
  bool Done() const;
  void Synchronize() const;
};

}  // namespace mega::kernels
