// When and what a rank saves: its share of the weights and of the optimizer's state, in the
// background, reported to the coordinator, which commits. Rank 0 then puts manifest.json beside the
// files. A failed save is reported and forgotten; training goes on.
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
               const optimizer::AdamW& optimizer, Pool& pool, TrainerLink& link);
  ~Checkpointer();

  bool Due(int64_t step) const;
  // Starts the save of the state after `step`; returns the seconds it held up training.
  double Save(int64_t step, const v1::TrainerState& state);
  // Writes manifests of checkpoints committed meanwhile (rank 0).
  void PublishCommitted();
  // Waits until the last save is on this rank's disk; false when it failed or there was none.
  bool FinishLastSave(absl::Duration timeout);
  // After FinishLastSave on all ranks: until the coordinator has committed it.
  void WaitForCommit(absl::Duration timeout);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mega::engine
