// When and what a rank saves: its share of the weights and of the optimizer's state, in the
// background, reported to the coordinator, which commits. Rank 0 then puts manifest.json beside the
// files. A failed save is reported and training goes on; only the last one must not fail.
// What is neither committed nor rejected, because the coordinator was away, is taken back when a
// later step is committed: by its order of telling, nothing before that can be committed any more.
// All ranks save or none does: Prepare on all, and when all agree Save, else Skip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "mega/v1/trainer.pb.h"
#include "worker/engine/checkpoint/writer.h"
#include "worker/engine/main/trainer_link.h"
#include "worker/engine/models/decoder.h"
#include "worker/engine/optimizer/adamw.h"

namespace mega::engine {

class Checkpointer {
 public:
  Checkpointer(const v1::StartTraining& start, int64_t dp_rank, models::Decoder& model,
               const optimizer::AdamW& optimizer, Pool& pool, Stream& stream, TrainerLink& link);
  ~Checkpointer();  // hears the last verdicts; finishes what is being written or taken back

  // Before the first step: what earlier attempts left of saves that were never committed goes.
  void RemoveLeftovers() const;
  // Whether the job saves of itself: each interval, its last step, or both.
  bool Saves() const;
  // Makes the folder, before the first step: INVALID_ARGUMENT where none can be made.
  absl::Status MakeFolder() const;

  // The ranks of several nodes must write into one folder, or none of them can read what the others
  // wrote. In this order: rank 0 leaves its mark in the folder; all ranks meet; each looks for it;
  // all ranks meet; the mark goes.
  bool NeedsSharedFolder() const;
  absl::Status LeaveMark();
  bool SeesMark() const;
  // The mark goes. INVALID_ARGUMENT when `missing` ranks, this one among them or not, do not see
  // it.
  absl::Status JudgeMark(int64_t missing);

  bool Due(int64_t step) const;
  // The last step's is the one that must not fail (checkpoint.save_on_exit).
  bool MustSucceed(int64_t step) const;

  // Whether this rank can save now: takes the snapshot's memory, and waits until the save before is
  // written, `timeout` at most.
  absl::Status Prepare(absl::Duration timeout);
  // After Prepare said OK on all ranks.
  void Save(int64_t step, const v1::TrainerState& state);
  // Instead of Save. `why`: what Prepare said here; OK where only other ranks cannot save.
  void Skip(int64_t step, const absl::Status& why);
  // What the coordinator said meanwhile: writes manifests of committed checkpoints (rank 0), takes
  // back what was written for rejected ones and for those that a commit overtook. At the start of
  // an attempt it names all checkpoints that the job keeps, the one to load last: what earlier
  // attempts left between them goes, in the background.
  void HearVerdicts();

  // Waits until the last save is on this rank's disk. OK too when there was none.
  absl::Status FinishLastSave(absl::Duration timeout);
  // After FinishLastSave: until the coordinator has committed it, or rejected it and what was
  // written is taken back. OK too when there was none; else as TrainerLink says.
  absl::Status WaitForCommit(absl::Duration timeout);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mega::engine
