#include "worker/engine/main/restore.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/log.h"
#include "coordinator/planner/spec/spec.h"
#include "manifest/validate.h"
#include "worker/engine/checkpoint/hf_folder.h"
#include "worker/engine/checkpoint/loader.h"
#include "worker/engine/checkpoint/manifest.h"
#include "worker/engine/main/state_slices.h"
#include "worker/engine/models/hf_names.h"

namespace mega::engine {
namespace {

bool IsHfFolder(const std::string& folder) {
  std::error_code error;  // who reads the folder says so
  return std::filesystem::exists(folder + "/config.json", error);
}

models::TensorSource SourceOf(const checkpoint::HfFolder& files) {
  return {.names = files.names(),
          .read = [&files](const std::string& name) -> absl::StatusOr<models::SourceTensor> {
            MEGA_ASSIGN_OR_RETURN(const checkpoint::TensorEntry entry, files.Get(name));
            const auto dims = entry.shape.dims();
            return models::SourceTensor{
                .dtype = entry.dtype, .shape = {dims.begin(), dims.end()}, .bytes = entry.data};
          }};
}

absl::Status LoadHfWeights(const std::string& folder, models::Decoder& model) {
  MEGA_ASSIGN_OR_RETURN(const checkpoint::HfFolder files, checkpoint::HfFolder::Open(folder));
  return models::LoadHf(model.spec(), SourceOf(files), model.parameters());
}

absl::StatusOr<v1::JobSpec> SpecOf(const v1::Manifest& manifest) {
  v1::JobSpec spec;
  const auto parsed = google::protobuf::util::JsonStringToMessage(manifest.spec_json(), &spec);
  if (!parsed.ok()) return DataLoss("spec_json is not a job spec: {}", parsed.ToString());
  return spec;
}

// What the job changes about the data and the optimizer, so that nobody wonders about the loss.
void ReportDifferences(const v1::Manifest& manifest, const v1::JobSpec& now) {
  const absl::StatusOr<v1::JobSpec> then = SpecOf(manifest);
  if (!then.ok()) return;
  const auto report = [](const auto& before, const auto& after) {
    if (before.ByteSizeLong() == 0) return;  // an older checkpoint does not say
    std::string differences;
    google::protobuf::util::MessageDifferencer differencer;
    differencer.ReportDifferencesToString(&differences);
    if (differencer.Compare(before, after)) return;
    const std::vector<std::string> lines = absl::StrSplit(differences, '\n', absl::SkipEmpty());
    for (const std::string& line : lines) {
      log::Warn("the job differs from the checkpoint it continues", {{"what", line}});
    }
  };
  report(then->data(), now.data());
  report(then->training(), now.training());
  report(then->optimizer(), now.optimizer());
  if (then->training().ByteSizeLong() == 0 && manifest.state().seed() != now.training().seed()) {
    log::Warn("the job's samples come in another order than the checkpoint's: seeds differ",
              {{"checkpoint", manifest.state().seed()}, {"job", now.training().seed()}});
  }
}

// Continues where the checkpoint ended.
absl::StatusOr<v1::TrainerState> Continue(const v1::Manifest& manifest, const std::string& folder,
                                          const v1::JobSpec& spec, models::Decoder& model,
                                          optimizer::AdamW& optimizer) {
  MEGA_RETURN_IF_ERROR(checkpoint::Load(manifest, folder, StateSlices(model, optimizer)));
  log::Info("continues from a checkpoint", {{"step", manifest.step()},
                                            {"samples", manifest.state().consumed_samples()},
                                            {"folder", folder}});
  ReportDifferences(manifest, spec);
  v1::TrainerState state = manifest.state();
  state.set_seed(spec.training().seed());  // the data's from here on
  return state;
}

constexpr char kUnusable[] = "unusable checkpoint";
constexpr char kOutOfSight[] = "checkpoint out of sight";

// A folder of a step that is gone is a damaged checkpoint. Where not even the folder above it is
// there, none of the job's checkpoints is, and most likely they are only out of sight: nobody shall
// train from the beginning because a file system is not mounted.
absl::Status CheckInSight(const v1::Manifest& manifest) {
  const std::filesystem::path above =
      std::filesystem::path(manifest.directory()).lexically_normal().parent_path();
  std::error_code error;
  if (std::filesystem::exists(above, error)) return absl::OkStatus();
  absl::Status status = absl::UnavailableError(fmt::format(
      "checkpoint {} cannot be loaded: there is no folder {} on this node; mount it, or give the "
      "job a checkpoint.directory that all its nodes share",
      manifest.directory(), above.string()));
  status.SetPayload(kOutOfSight, absl::Cord());
  return status;
}

absl::StatusOr<v1::TrainerState> ContinueCommitted(const v1::StartTraining& start,
                                                   models::Decoder& model,
                                                   optimizer::AdamW& optimizer) {
  const v1::Manifest& manifest = start.load();
  MEGA_RETURN_IF_ERROR(manifest::Validate(manifest));
  MEGA_RETURN_IF_ERROR(CheckInSight(manifest));
  return Continue(manifest, manifest.directory(), start.spec(), model, optimizer);
}

}  // namespace

bool IsUnusableCheckpoint(const absl::Status& status) {
  return status.GetPayload(kUnusable).has_value();
}

bool IsOutOfSight(const absl::Status& status) { return status.GetPayload(kOutOfSight).has_value(); }

absl::StatusOr<v1::TrainerState> Restore(const v1::StartTraining& start, models::Decoder& model,
                                         optimizer::AdamW& optimizer) {
  if (start.has_load() && start.load().step() > 0) {
    absl::StatusOr<v1::TrainerState> state = ContinueCommitted(start, model, optimizer);
    if (state.ok() || IsOutOfSight(state.status())) return state;
    absl::Status why = state.status();
    why.SetPayload(kUnusable, absl::Cord());
    return why;
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
  if (manifest->step() >= start.plan().steps()) {
    return InvalidArgument(
        "checkpoint.load: {} is of step {} and the job has {} steps, so nothing is left to train; "
        "raise training.steps (or training.tokens), or load an earlier checkpoint",
        *folder, manifest->step(), start.plan().steps());
  }
  return Continue(*manifest, *folder, start.spec(), model, optimizer);
}

namespace {

absl::StatusOr<LoadedModel> LoadHfModel(const std::string& folder, Pool& pool, Stream& stream) {
  v1::JobSpec spec;
  MEGA_ASSIGN_OR_RETURN(*spec.mutable_model(), planner::ReadHfConfig(folder));
  MEGA_ASSIGN_OR_RETURN(const planner::ModelSpec model,
                        planner::MakeModelSpec(spec::ApplyDefaults(spec)));
  LoadedModel loaded;
  MEGA_ASSIGN_OR_RETURN(loaded.stop_tokens, planner::ReadHfStopTokens(folder));
  MEGA_ASSIGN_OR_RETURN(const checkpoint::HfFolder files, checkpoint::HfFolder::Open(folder));
  MEGA_RETURN_IF_ERROR(models::CheckHf(model, SourceOf(files)));
  MEGA_ASSIGN_OR_RETURN(loaded.decoder,
                        models::Decoder::Make(model, models::StageSlice{}, pool, stream));
  MEGA_RETURN_IF_ERROR(models::LoadHf(model, SourceOf(files), loaded.decoder->parameters()));
  return loaded;
}

// The parameters as slices without memory.
std::vector<checkpoint::NamedSlice> WantedBy(const planner::ModelSpec& model) {
  std::vector<checkpoint::NamedSlice> wanted;
  for (const planner::ParameterInfo& info : planner::Parameters(model)) {
    const std::vector<int64_t>& shape = info.sharding.global_shape;
    wanted.push_back({.name = info.name,
                      .global_shape = shape,
                      .offset = std::vector<int64_t>(shape.size(), 0),
                      .view = TensorView(nullptr, DType::kF32, Shape(shape))});
  }
  return wanted;
}

}  // namespace

// Files are compared with the shapes they must have before a byte is taken for a model: what
// config.json or a manifest claims may be far larger than what is there.
absl::StatusOr<LoadedModel> LoadModel(const std::string& folder, Pool& pool, Stream& stream) {
  if (IsHfFolder(folder)) return LoadHfModel(folder, pool, stream);
  MEGA_ASSIGN_OR_RETURN(const std::string found, checkpoint::FindCheckpoint(folder));
  MEGA_ASSIGN_OR_RETURN(const v1::Manifest manifest, checkpoint::ReadManifest(found));
  const absl::StatusOr<v1::JobSpec> spec = SpecOf(manifest);
  if (!spec.ok()) return Annotate(spec.status(), found + "/manifest.json");
  MEGA_ASSIGN_OR_RETURN(const planner::ModelSpec model, planner::MakeModelSpec(*spec));
  MEGA_RETURN_IF_ERROR(checkpoint::CheckLoad(manifest, found, WantedBy(model)));
  LoadedModel loaded;
  MEGA_ASSIGN_OR_RETURN(loaded.decoder,
                        models::Decoder::Make(model, models::StageSlice{}, pool, stream));
  MEGA_RETURN_IF_ERROR(checkpoint::Load(manifest, found, WeightSlices(*loaded.decoder)));
  loaded.tokenizer = spec->data().tokenizer();
  return loaded;
}

}  // namespace mega::engine
