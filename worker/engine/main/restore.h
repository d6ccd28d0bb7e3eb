// Where a rank's weights come from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "mega/v1/trainer.pb.h"
#include "worker/engine/models/decoder.h"
#include "worker/engine/optimizer/adamw.h"

namespace mega::engine {

// In this order: the manifest that the coordinator sent (a restart), checkpoint.load (a Mega
// checkpoint continues with optimizer and step, a Hugging Face folder gives weights), fresh values
// from the seed. Returns the state to continue from (step 0 for the latter two), and says where the
// job differs from what the checkpoint was trained with.
absl::StatusOr<v1::TrainerState> Restore(const v1::StartTraining& start, models::Decoder& model,
                                         optimizer::AdamW& optimizer);

// Was it the coordinator's manifest that Restore could not load? Then the job may be right, and an
// older checkpoint of it good.
bool IsUnusableCheckpoint(const absl::Status& status);
// Or is not even the folder above it there? Then it may be whole, and seen from another node.
bool IsOutOfSight(const absl::Status& status);

// A model for generation: a Mega checkpoint or a Hugging Face folder.
struct LoadedModel {
  std::unique_ptr<models::Decoder> decoder;
  std::string tokenizer;             // name; empty for a Hugging Face folder
  std::vector<int32_t> stop_tokens;  // eos_token_id of a Hugging Face folder
};
absl::StatusOr<LoadedModel> LoadModel(const std::string& folder, Pool& pool, Stream& stream);

}  // namespace mega::engine
