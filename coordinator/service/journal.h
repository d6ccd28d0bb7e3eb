// The inputs of the core, on disk, so that what it decided can be run again bit for bit. A ring of
// segment files, each "MEGAJNL1" and then records (length, CRC-32C, JournalRecord), the first a
// snapshot of the state. Written unsynced by a thread of its own: a power cut loses the end of the
// newest segment, a stalled disk delays nobody. A segment takes at least as many bytes of inputs as
// its snapshot has, so that a large state costs no more than what happens to it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "coordinator/core/step.h"
#include "mega/v1/coordinator.pb.h"

namespace mega::service {

// Of the mutations and effects, in order; the same on every machine.
uint64_t DecisionHash(const core::Decision& decision);

// A record's length has 4 bytes; larger ones are taken for a torn end, and Protocol Buffers end at
// twice this.
inline constexpr int64_t kMostRecordBytes = int64_t{1} << 30;

// Appends. Used by one thread.
class Journal {
 public:
  // Segments go into `folder` (made if absent); together they stay below `most_bytes`, unless a
  // single one must be larger. Inputs beyond `most_waiting_bytes` that the disk has not taken yet
  // are left out; so are all that would follow a snapshot of more than `most_snapshot_bytes`, which
  // nobody could read back.
  Journal(std::string folder, int64_t most_bytes, int64_t most_waiting_bytes = 64 << 20,
          int64_t most_snapshot_bytes = kMostRecordBytes);
  // Writes what was appended, then joins.
  ~Journal();

  // True at the start, when the segment is full, and after inputs had to be left out because the
  // disk was too slow: StartSegment must come before the next Append. Not while the disk is behind:
  // a snapshot is the last thing that it could take then.
  bool WantsSnapshot();
  void StartSegment(v1::CoreSnapshot snapshot);
  void Append(const v1::CoreEvent& event, uint64_t decision_hash);

 private:
  struct Piece {
    v1::JournalRecord record;
    int64_t bytes = 0;  // about; the record is serialised by the writing thread
  };
  void Run();
  void Write(const Piece& piece);
  void OpenSegment(const Piece& first);
  void RemoveOldest(int64_t coming_bytes);
  // Bytes of inputs that follow a snapshot of that size.
  int64_t InputsAfter(int64_t snapshot_bytes) const;

  const std::string folder_;
  const int64_t most_bytes_;
  const int64_t most_waiting_bytes_;
  const int64_t most_snapshot_bytes_;
  int64_t next_number_;
  int64_t room_ = 0;  // bytes of inputs that the segment still takes
  bool wants_snapshot_ = true;
  bool gap_ = false;        // an input was left out: nothing more until the next segment
  bool too_large_ = false;  // the state is, for a snapshot

  Mutex mu_;
  CondVar wake_;
  std::deque<Piece> pieces_ MEGA_GUARDED_BY(mu_);
  int64_t waiting_bytes_ MEGA_GUARDED_BY(mu_) = 0;  // of inputs
  int64_t waiting_snapshot_bytes_ MEGA_GUARDED_BY(mu_) = 0;
  bool stop_ MEGA_GUARDED_BY(mu_) = false;

  // Of the writing thread alone.
  int fd_ = -1;
  std::jthread thread_;  // last: starts when the rest is there
};

// Segment files of a journal folder, oldest first.
absl::StatusOr<std::vector<std::string>> JournalSegments(const std::string& folder);

// Calls `visit` with each record of a segment, in order. A torn end (crash) is no error;
// `torn` tells of it. DATA_LOSS for anything else that cannot be read.
absl::Status ReadSegment(const std::string& path,
                         const std::function<absl::Status(const v1::JournalRecord&)>& visit,
                         bool* torn);

}  // namespace mega::service
