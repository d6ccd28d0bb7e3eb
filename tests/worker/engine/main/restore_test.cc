#include "worker/engine/main/restore.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/worker/engine/main/scripted_worker.h"
#include "worker/engine/checkpoint/manifest.h"
#include "worker/engine/checkpoint/safetensors.h"

namespace mega::engine {
namespace {

using ::testing::HasSubstr;

// The checkpoint of a job that ran.
v1::Manifest Trained(const testing::TempDir& dir, const v1::JobSpec& spec) {
  const v1::StartTraining start = StartOf(spec, dir);
  ScriptedWorker worker(dir, start);
  MEGA_CHECK_OK(RunRank(start, worker));
  return worker.committed().at(0);
}

absl::Status LoadStatus(const std::string& folder) {
  Pool pool{Device{}};
  Stream stream({}, 1);
  const auto loaded = LoadModel(folder, pool, stream);
  EXPECT_EQ(pool.Total().peak_bytes > 0, loaded.ok());  // nothing is taken for what is not there
  return loaded.status();
}

v1::JobSpec SpecOf(const v1::Manifest& manifest) {
  v1::JobSpec spec;
  const auto parsed = google::protobuf::util::JsonStringToMessage(manifest.spec_json(), &spec);
  MEGA_CHECK_OK(parsed);
  return spec;
}

void SetSpec(const v1::JobSpec& spec, v1::Manifest& manifest) {
  manifest.clear_spec_json();
  const auto printed =
      google::protobuf::util::MessageToJsonString(spec, manifest.mutable_spec_json());
  MEGA_CHECK_OK(printed);
}

// Case: a manifest of a few hundred bytes that claimed a model of terabytes ended the process.
TEST(LoadModel, AModelFarLargerThanItsFilesIsRefusedBeforeMemoryIsTaken) {
  testing::TempDir dir;
  v1::Manifest manifest = Trained(dir, TinyJob(dir));
  const std::string folder = manifest.directory();
  EXPECT_EQ(LoadStatus(folder), absl::OkStatus());

  v1::JobSpec spec = SpecOf(manifest);
  spec.mutable_model()->set_vocab_size(int64_t{1} << 24);
  SetSpec(spec, manifest);
  ASSERT_EQ(checkpoint::WriteManifest(manifest, folder), absl::OkStatus());
  EXPECT_THAT(std::string(LoadStatus(folder).message()),
              HasSubstr("embedding.weight is F32 [256, 16] there but F32 [16777216, 16] here"));

  for (v1::TensorInfo& tensor : *manifest.mutable_tensors())
    if (tensor.name() == "embedding.weight" || tensor.name() == "head.weight")
      tensor.set_global_shape(0, spec.model().vocab_size());
  for (v1::TensorSlice& slice : *manifest.mutable_slices())
    if (slice.tensor() == "embedding.weight" || slice.tensor() == "head.weight")
      slice.set_shape(0, spec.model().vocab_size());
  ASSERT_EQ(checkpoint::WriteManifest(manifest, folder), absl::OkStatus());
  const absl::Status status = LoadStatus(folder);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("but its model needs"));
}

TEST(LoadModel, AHuggingFaceFolderWithoutTheTensorsOfItsConfigIsRefusedBeforeMemoryIsTaken) {
  testing::TempDir dir;
  testing::WriteFile(dir / "config.json",
                     R"({"model_type": "llama", "num_hidden_layers": 10000, "hidden_size": 65536,
                         "intermediate_size": 65536, "num_attention_heads": 64,
                         "vocab_size": 1000000, "max_position_embeddings": 1048576})");
  const std::vector<checkpoint::TensorDeclaration> one = {
      {"model.norm.weight", kernels::DType::kF32, kernels::Shape{1}}};
  auto writer = checkpoint::SafetensorsWriter::Create(dir / "model.safetensors", one);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Append(std::vector<std::byte>(4)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_THAT(std::string(LoadStatus(dir.path()).message()),
              HasSubstr("model.norm.weight is 1 but the model needs 65536"));
}

// Case: a job of 26 steps that loaded one of step 2^62 "succeeded: 0 steps, loss 0.0000".
TEST(Restore, ACheckpointAfterWhichNothingIsLeftToTrainIsRefused) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  const v1::Manifest manifest = Trained(dir, spec);
  ASSERT_EQ(manifest.step(), 4);
  spec.mutable_checkpoint()->set_load(manifest.directory());
  for (const int64_t steps : {3, 4, 5}) {
    spec.mutable_training()->set_steps(steps);
    const v1::StartTraining start = StartOf(spec, dir);
    ScriptedWorker worker(dir, start);
    const absl::Status status = RunRank(start, worker);
    if (steps == 5) {
      EXPECT_EQ(status, absl::OkStatus());
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(IsUnusableCheckpoint(status));
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr(fmt::format("is of step 4 and the job has {} steps, so nothing is left to "
                              "train; raise training.steps",
                              steps)));
  }
}

// The coordinator's checkpoint is not the user's mistake: an older one may do.
TEST(Restore, ACommittedCheckpointThatCannotBeReadIsToldFromWrongInput) {
  namespace fs = std::filesystem;
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_checkpoint()->set_interval_steps(2);
  const v1::Manifest manifest = Trained(dir, spec);
  const std::string shard = manifest.directory() + "/" + manifest.files(0).name();
  const auto load = [&](const v1::Manifest& from) {
    v1::StartTraining start = StartOf(spec, dir);
    *start.mutable_load() = from;
    ScriptedWorker worker(dir, start);
    return RunRank(start, worker);
  };
  const auto expect_unusable = [&](std::string_view why) {
    const absl::Status status = load(manifest);
    EXPECT_TRUE(IsUnusableCheckpoint(status)) << why << ": " << status;
  };
  const std::string bytes = testing::ReadFile(shard);
  std::string damaged = bytes;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  testing::WriteFile(shard, damaged);
  expect_unusable("a bit");
  testing::WriteFile(shard, bytes.substr(0, bytes.size() / 2));
  expect_unusable("torn");
  fs::remove(shard);
  expect_unusable("no shard");
  fs::remove_all(manifest.directory());
  expect_unusable("no folder");

  v1::JobSpec by_user = spec;
  by_user.mutable_checkpoint()->set_load(manifest.directory());
  const v1::StartTraining start = StartOf(by_user, dir);
  ScriptedWorker worker(dir, start);
  const absl::Status wrong = RunRank(start, worker);
  EXPECT_EQ(wrong.code(), absl::StatusCode::kNotFound) << wrong;
  EXPECT_FALSE(IsUnusableCheckpoint(wrong));

  // Everything is gone: the disk is not mounted, more likely than each of them damaged.
  fs::remove_all(fs::path(manifest.directory()).parent_path());
  const absl::Status out_of_sight = load(manifest);
  EXPECT_EQ(out_of_sight.code(), absl::StatusCode::kUnavailable) << out_of_sight;
  EXPECT_THAT(std::string(out_of_sight.message()), HasSubstr("mount it"));
  EXPECT_TRUE(IsOutOfSight(out_of_sight));
  EXPECT_FALSE(IsUnusableCheckpoint(out_of_sight));
}

}  // namespace
}  // namespace mega::engine
