// Open sessions of workers, by number. Effects reach workers through here.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "mega/v1/worker.pb.h"

namespace mega::service {

// The sending end of one session; outlives the stream behind it.
class SessionWriter {
 public:
  virtual ~SessionWriter() = default;
  // Queues. Dropped when the session is over; a worker too slow to take its messages is cut.
  virtual void Send(v1::CoordinatorMessage message) = 0;
  // Ends the session after what is queued.
  virtual void Close() = 0;
};

class SessionTable {
 public:
  // Numbers rise, from 1.
  int64_t Open(const std::string& node, std::shared_ptr<SessionWriter> writer);
  void Closed(int64_t session);

  void Send(int64_t session, v1::CoordinatorMessage message);
  void Close(int64_t session);
  void CloseAll();

  // The session of a node that the core leads: open, and the last of the node's that was given a
  // lease. A hello that the core refuses opens a session too, but never such a one. 0: none.
  int64_t SessionOf(const std::string& node) const;
  size_t size() const;

 private:
  struct Entry {
    std::string node;
    std::shared_ptr<SessionWriter> writer;
  };
  std::shared_ptr<SessionWriter> Find(int64_t session) const;

  mutable Mutex mu_;
  int64_t last_ MEGA_GUARDED_BY(mu_) = 0;
  std::map<int64_t, Entry> sessions_ MEGA_GUARDED_BY(mu_);
  std::map<std::string, int64_t> leading_ MEGA_GUARDED_BY(mu_);
};

}  // namespace mega::service
