// Checkpoints that retention wants removed, from the order to the end of the removal. They are on
// disk before the order is acked, and until it is carried out: neither a worker that ends in
// between nor a disk that refuses for a while leaves a checkpoint there for ever.
//
// What the disk refuses is tried again, later and later, and told at the first time; /metrics
// counts what waits. What no try would change is told and forgotten (checkpoint_removal.h).
//
// <state-dir>/removals.jsonl: a DeleteCheckpoint a line. All methods run on the loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "mega/v1/worker.pb.h"
#include "worker/daemon/event_loop.h"

namespace mega::daemon {

class Removals {
 public:
  struct Options {
    absl::Duration first_retry = absl::Seconds(1);
    absl::Duration last_retry = absl::Minutes(10);
  };
  // `chores` carries them out: a disk may hang.
  Removals(const std::string& state_dir, EventLoop& loop, EventLoop& chores, Options options);

  // What earlier incarnations were told. Before anything else.
  void Load();
  // On disk when it is OK, in one write. One that is kept already, or that is no order at all,
  // changes nothing.
  absl::Status Keep(const std::vector<v1::DeleteCheckpoint>& orders);
  // Begins what waits for nothing.
  void CarryOut();
  int64_t waiting() const { return static_cast<int64_t>(kept_.size()); }

  // Beyond them the oldest is given up: a disk that takes no removal for so long needs a person.
  static constexpr size_t kMostKept = 1024;

 private:
  struct Kept {
    v1::DeleteCheckpoint order;
    int tries = 0;
    bool is_under_way = false;  // on the chores, or waiting for its next try
  };
  std::vector<Kept>::iterator Find(const v1::DeleteCheckpoint& order);
  void Try(const v1::DeleteCheckpoint& order);
  void Tried(const v1::DeleteCheckpoint& order, const absl::Status& status);
  void WriteSoon();
  absl::Status Write() const;

  const std::string path_;
  EventLoop& loop_;
  EventLoop& chores_;
  const Options options_;
  std::vector<Kept> kept_;  // the oldest first
  bool is_write_posted_ = false;
};

}  // namespace mega::daemon
