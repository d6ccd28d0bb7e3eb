#include "worker/engine/main/restore.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "worker/engine/checkpoint/hf_folder.h"
#include "worker/engine/checkpoint/loader.h"
#include "worker/engine/checkpoint/manifest.h"
#include "worker/engine/main/state_slices.h"
#include "worker/engine/models/hf_names.h"

namespace mega::engine {
namespace {

bool IsHfFolder(const std::string& folder) {
  return std::filesystem::exists(folder + "/config.json");
}

absl::Status LoadHfWeights(const std::string& folder, models::Decoder& model) {
  MEGA_ASSIGN_OR_RETURN(const checkpoint::HfFolder files, checkpoint::HfFolder::Open(folder));
  const models::TensorSource source{
      .names = files.names(),
      .read = [&files](const std::string& name) -> absl::StatusOr<models::SourceTensor> {
        MEGA_ASSIGN_OR_RETURN(const checkpoint::TensorEntry entry, files.Get(name));
        const auto dims = entry.shape.dims();
        return models::SourceTensor{
            .dtype = entry.dtype, .shape = {dims.begin(), dims.end()}, .bytes = entry.data};
      }};
  return models::LoadHf(model.spec(), source, model.parameters());
}

// Continues where the checkpoint ended.
absl::StatusOr<v1::TrainerState> Continue(const v1::Manifest& manifest, const std::string& folder,
                                          models::Decoder& model, optimizer::AdamW& optimizer) {
  MEGA_RETURN_IF_ERROR(checkpoint::Load(manifest, folder, StateSlices(model, optimizer)));
  log::Info("continues from a checkpoint", {{"step", manifest.step()}, {"folder", folder}});
  return manifest.state();
}

}  // namespace

absl::StatusOr<v1::TrainerState> Restore(const v1::StartTraining& start, models::Decoder& model,
                                         optimizer::AdamW& optimizer) {
  if (start.has_load() && start.load().step() > 0) {
    MEGA_RETURN_IF_ERROR(checkpoint::ValidateManifest(start.load()));
    return Continue(start.load(), start.load().directory(), model, optimizer);
  }
  v1::TrainerState fresh;
  fresh.set_seed(start.spec().training().seed());
  const std::string& load = start.spec().checkpoint().load();
  if (load.empty()) {
    model.InitWeights(static_cast<uint64_t>(fresh.seed()));
    return fresh;
  }
  if (IsHfFolder(load)) {
    MEGA_RETURN_IF_ERROR(Annotate(LoadHfWeights(load, model), "checkpoint.load"));
    return fresh;
  }
  absl::StatusOr<std::string> folder = checkpoint::FindCheckpoint(load);
  if (!folder.ok()) return Annotate(folder.status(), "checkpoint.load");
  absl::StatusOr<v1::Manifest> manifest = checkpoint::ReadManifest(*folder);
  if (!manifest.ok()) return Annotate(manifest.status(), "checkpoint.load");
  return Continue(*manifest, *folder, model, optimizer);
}

absl::StatusOr<LoadedModel> LoadModel(const std::string& folder, Pool& pool, Stream& stream) {
  LoadedModel loaded;
  v1::JobSpec spec;
  if (IsHfFolder(folder)) {
    MEGA_ASSIGN_OR_RETURN(*spec.mutable_model(), planner::ReadHfConfig(folder));
    MEGA_ASSIGN_OR_RETURN(const planner::ModelSpec model, planner::MakeModelSpec(spec));
    loaded.decoder = std::make_unique<models::Decoder>(model, models::StageSlice{}, pool, stream);
    MEGA_RETURN_IF_ERROR(LoadHfWeights(folder, *loaded.decoder));
    return loaded;
  }
  MEGA_ASSIGN_OR_RETURN(const std::string found, checkpoint::FindCheckpoint(folder));
  MEGA_ASSIGN_OR_RETURN(const v1::Manifest manifest, checkpoint::ReadManifest(found));
  const auto parsed = google::protobuf::util::JsonStringToMessage(manifest.spec_json(), &spec);
  if (!parsed.ok()) {
    return DataLoss("{}/manifest.json: spec_json is not a job spec: {}", found, parsed.ToString());
  }
  MEGA_ASSIGN_OR_RETURN(const planner::ModelSpec model, planner::MakeModelSpec(spec));
  loaded.decoder = std::make_unique<models::Decoder>(model, models::StageSlice{}, pool, stream);
  MEGA_RETURN_IF_ERROR(checkpoint::Load(manifest, found, WeightSlices(*loaded.decoder)));
  loaded.tokenizer = spec.data().tokenizer();
  return loaded;
}

}  // namespace mega::engine
