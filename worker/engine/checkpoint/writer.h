// Saves a rank's share of a checkpoint in the background.
// Save copies the values (the snapshot is all that training waits for) and returns; a thread writes
// one safetensors file under a temporary name, syncs, renames, and hands the part to `done`. One
// save at a time: while one is under way there is no other, so a stalled disk never stops training.
// A failure leaves no file and is the caller's to report; the writer goes on working. Discard takes
// back what nobody will commit.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "mega/v1/checkpoint.pb.h"
#include "mega/v1/worker.pb.h"
#include "worker/engine/checkpoint/named_slice.h"
#include "worker/engine/tensor/pool.h"

namespace mega::checkpoint {

// Folder of one step: DIRECTORY/step-00000200.
std::string StepFolder(const std::string& directory, int64_t step);

class Writer {
 public:
  // Called on the writer's thread.
  using Done = std::function<void(int64_t step, absl::StatusOr<v1::CheckpointPart> part)>;

  // Files go to StepFolder(directory, step), named by attempt and rank. `stream` is the caller's.
  Writer(std::string directory, v1::RankRef rank, Pool& pool, Stream& stream, Done done);
  ~Writer();  // finishes what is under way

  // Whether a Save of `share` can start now, and the memory for its snapshot, kept for all saves.
  // UNAVAILABLE while one is under way, RESOURCE_EXHAUSTED when the snapshot does not fit.
  absl::Status Prepare(std::span<const NamedSlice> share);
  // As Prepare, then starts it; on error nothing has happened and `done` is not called. `share`:
  // what this rank writes (shares.h). `state`: rank 0's, else nothing.
  absl::Status Save(int64_t step, std::span<const NamedSlice> share,
                    std::optional<v1::TrainerState> state);
  // Removes this rank's file of `step` and the folder, if it is empty then; once it is written,
  // where it is under way. Never of a step that may be committed.
  void Discard(int64_t step);
  // Until the last Save is done or failed and nothing is left to remove. False when the time is
  // over.
  bool WaitIdle(absl::Duration timeout);

 private:
  struct Job {
    int64_t step = 0;
    std::vector<NamedSlice> slices;  // views into snapshot_
    std::optional<v1::TrainerState> state;
  };
  void Run(std::stop_token stop);
  absl::StatusOr<v1::CheckpointPart> Write(const Job& job) const;
  std::string FileName() const;
  void Remove(int64_t step) const;

  const std::string directory_;
  const v1::RankRef rank_;
  Pool& pool_;
  Stream& stream_;
  const Done done_;
  Tensor snapshot_;  // kept between saves; the thread reads it while a job is there

  Mutex mu_;
  CondVar changed_;
  std::optional<Job> job_ MEGA_GUARDED_BY(mu_);
  std::set<int64_t> discarded_ MEGA_GUARDED_BY(mu_);     // the newest ones
  std::vector<int64_t> to_remove_ MEGA_GUARDED_BY(mu_);  // the first is being removed
  std::jthread thread_;
};

}  // namespace mega::checkpoint
