#include "worker/engine/models/hf_names.h"

#include <map>
#include <numeric>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/harness/tiny.h"

namespace mega::models {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::TinyModel;
using testing::TinySpec;

// A folder in memory: every tensor of the model with values of its own.
struct FakeFolder {
  explicit FakeFolder(const planner::ModelSpec& spec) {
    float next = 1;
    for (const HfTensor& tensor : HfTensors(spec)) {
      std::vector<float> values(kernels::Shape(tensor.shape).elements());
      std::iota(values.begin(), values.end(), next);
      next += static_cast<float>(values.size());
      shapes[tensor.name] = tensor.shape;
      tensors[tensor.name] = std::move(values);
    }
  }
  TensorSource source() const {
    TensorSource result;
    for (const auto& [name, values] : tensors) result.names.push_back(name);
    result.read = [this](const std::string& name) -> absl::StatusOr<SourceTensor> {
      return SourceTensor{kernels::DType::kF32, shapes.at(name),
                          std::as_bytes(std::span(tensors.at(name)))};
    };
    return result;
  }
  std::map<std::string, std::vector<float>> tensors;
  std::map<std::string, std::vector<int64_t>> shapes;
};

TEST(HfNames, EveryElementOfOursComesFromExactlyOneOfTheirs) {
  for (const bool tied : {false, true}) {
    planner::ModelSpec spec = TinySpec();
    spec.tie_embeddings = tied;
    TinyModel tiny(spec);
    const FakeFolder folder(spec);
    ASSERT_TRUE(LoadHf(spec, folder.source(), tiny.model.parameters()).ok());
    double ours = 0, theirs = 0;
    for (const Parameter* parameter : tiny.model.parameters())
      for (const float value : parameter->value.flat<const float>()) ours += value;
    for (const auto& [name, values] : folder.tensors)
      for (const float value : values) theirs += value;
    EXPECT_EQ(ours, theirs);
  }
}

TEST(HfNames, ExportUndoesImport) {
  TinyModel tiny;
  const FakeFolder folder(TinySpec());
  ASSERT_TRUE(LoadHf(TinySpec(), folder.source(), tiny.model.parameters()).ok());
  for (const HfTensor& tensor : HfTensors(TinySpec()))
    EXPECT_THAT(ExportHf(tensor, tiny.model.Find(tensor.ours)->value),
                ElementsAreArray(folder.tensors.at(tensor.name)))
        << tensor.name;
}

// 4 query heads and 2 key/value heads of size 8: rows of ours are q0 q1 k0 v0 q2 q3 k1 v1.
TEST(HfNames, ProjectionRowsFollowTheirKeyValueGroup) {
  TinyModel tiny;
  const FakeFolder folder(TinySpec());
  ASSERT_TRUE(LoadHf(TinySpec(), folder.source(), tiny.model.parameters()).ok());
  const auto qkv = tiny.model.Find("layers.1.attention.qkv.weight")->value.As<const float, 2>();
  const auto head = [&](const std::string& name, int64_t h) {
    return folder.tensors.at("model.layers.1.self_attn." + name + "_proj.weight")[h * 8 * 32];
  };
  const std::vector<float> expected = {head("q", 0), head("q", 1), head("k", 0), head("v", 0),
                                       head("q", 2), head("q", 3), head("k", 1), head("v", 1)};
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(qkv(i * 8, 0), expected[i]) << i;
}

TEST(HfNames, AllThatDoesNotFitIsInOneErrorAndNothingIsWritten) {
  TinyModel tiny;
  const auto before_view = tiny.model.Find("embedding.weight")->value.flat<const float>();
  const std::vector<float> before(before_view.begin(), before_view.end());
  FakeFolder folder(TinySpec());
  folder.tensors.erase("lm_head.weight");
  folder.shapes["model.norm.weight"] = {33};
  folder.tensors["model.layers.7.mlp.up_proj.weight"] = {1};
  const absl::Status status = LoadHf(TinySpec(), folder.source(), tiny.model.parameters());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("lm_head.weight is missing"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("model.norm.weight is 33 but"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("model.layers.7.mlp.up_proj.weight is unknown"));
  EXPECT_THAT(before_view, ElementsAreArray(before));
}

TEST(HfNames, HalfPrecisionIsWidened) {
  TinyModel tiny;
  FakeFolder folder(TinySpec());
  TensorSource source = folder.source();
  const auto read = source.read;
  const std::vector<uint16_t> bf16(32, 0x3fc0), f16(32, 0x3e00);  // 1.5 in both
  source.read = [&](const std::string& name) -> absl::StatusOr<SourceTensor> {
    if (name == "model.norm.weight")
      return SourceTensor{kernels::DType::kBF16, {32}, std::as_bytes(std::span(bf16))};
    if (name == "model.layers.0.input_layernorm.weight")
      return SourceTensor{kernels::DType::kF16, {32}, std::as_bytes(std::span(f16))};
    return read(name);
  };
  ASSERT_TRUE(LoadHf(TinySpec(), source, tiny.model.parameters()).ok());
  EXPECT_EQ(tiny.model.Find("final_norm.weight")->value.ptr<float>()[31], 1.5f);
  EXPECT_EQ(tiny.model.Find("layers.0.attention_norm.weight")->value.ptr<float>()[31], 1.5f);
}

}  // namespace
}  // namespace mega::models
