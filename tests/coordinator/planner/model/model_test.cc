#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "coordinator/planner/model/model_spec.h"
#include "coordinator/planner/spec/spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_dir.h"

namespace mega::planner {
namespace {

using ::testing::HasSubstr;

v1::JobSpec TinyJob() {
  v1::JobSpec spec;
  spec.mutable_model()->set_num_layers(2);
  spec.mutable_model()->set_hidden_size(96);
  spec.mutable_model()->set_num_attention_heads(6);
  spec.mutable_data()->set_seq_length(32);
  return spec;
}

absl::StatusOr<ModelSpec> Make(const v1::JobSpec& spec) {
  return MakeModelSpec(spec::ApplyDefaults(spec));
}

TEST(ModelSpec, UnsetKeysFollowFromOthers) {
  const ModelSpec spec = *Make(TinyJob());
  EXPECT_EQ(spec.ffn_hidden_size, 256);  // 8/3 · 96
  EXPECT_EQ(spec.num_query_groups, 6);
  EXPECT_EQ(spec.head_dim, 16);
  EXPECT_EQ(spec.vocab_size, 256);
  EXPECT_EQ(spec.max_position_embeddings, 32);
}

TEST(ModelSpec, ListsEveryViolation) {
  v1::JobSpec job = TinyJob();
  job.mutable_model()->set_hidden_size(97);
  job.mutable_model()->set_num_layers(0);
  const absl::Status status = Make(job).status();
  EXPECT_EQ(status.message(),
            "model.num_layers is 0; choose at least 1\n"
            "model.hidden_size is 97 but model.num_attention_heads is 6; choose a multiple of 6, "
            "or give model.head_dim");
}

TEST(ModelSpec, WantsEveryKeyOnceTheConfigWasRead) {
  v1::JobSpec job = TinyJob();
  job.mutable_model()->set_hf("/models/x");
  job.mutable_model()->clear_num_layers();
  EXPECT_THAT(std::string(Make(job).status().message()), HasSubstr("model.num_layers is not set"));
}

TEST(ModelSpec, RefusesModelsWhoseSizesLeave64Bits) {
  v1::JobSpec job = TinyJob();
  job.mutable_model()->set_num_layers(10000);
  job.mutable_model()->set_hidden_size(1048576);
  job.mutable_model()->set_num_attention_heads(65536);
  job.mutable_model()->set_head_dim(4096);
  EXPECT_THAT(std::string(Make(job).status().message()), HasSubstr("parameters; the most"));
}

// The counts below were taken from transformers' LlamaForCausalLM of the same configuration.
TEST(Parameters, CountEqualsTheReferenceModel) {
  v1::JobSpec job = TinyJob();
  job.mutable_model()->set_num_layers(3);
  job.mutable_model()->set_ffn_hidden_size(160);
  job.mutable_model()->set_num_query_groups(2);
  job.mutable_model()->set_vocab_size(384);
  EXPECT_EQ(CountParameters(*Make(job)), 286'368);
}

TEST(Parameters, TiedModelsHaveNoHead) {
  v1::JobSpec job = TinyJob();
  const auto untied = Parameters(*Make(job));
  job.mutable_model()->set_tie_embeddings(true);
  const auto tied = Parameters(*Make(job));
  EXPECT_EQ(untied.size(), 2 * 6 + 3u);
  EXPECT_EQ(tied.size(), 2 * 6 + 2u);
  EXPECT_EQ(untied.back().name, "head.weight");
  EXPECT_EQ(tied.back().name, "final_norm.weight");
}

TEST(Parameters, DeclareShapeCutStartAndDecay) {
  const auto list = Parameters(*Make(TinyJob()));
  EXPECT_EQ(list[1].name, "layers.0.attention_norm.weight");
  EXPECT_EQ(list[1].init, ParameterInfo::Init::kOnes);
  EXPECT_FALSE(list[1].weight_decay);
  EXPECT_EQ(list[1].sharding.partial, (std::vector<Axis>{Axis::kTensor, Axis::kContext}));
  EXPECT_EQ(list[3].name, "layers.0.attention.out.weight");
  EXPECT_EQ(list[3].sharding.axis_of_dim,
            (std::vector<int>{Sharding::kNone, static_cast<int>(Axis::kTensor)}));
  EXPECT_DOUBLE_EQ(list[3].init_std, 0.01);  // 0.02 / sqrt(2 · 2)
  EXPECT_EQ(list[5].name, "layers.0.mlp.gate_up.weight");
  EXPECT_EQ(list[5].sharding.global_shape, (std::vector<int64_t>{512, 96}));
  EXPECT_EQ(list[5].sharding.stacked, 2);
  EXPECT_EQ(list[7].layer, 1);
  EXPECT_EQ(list[0].layer, -1);
}

TEST(Parameters, RandomKeysAreStableAndDifferent) {
  const auto list = Parameters(*Make(TinyJob()));
  std::set<uint64_t> keys;
  for (const ParameterInfo& info : list) keys.insert(info.random_key);
  EXPECT_EQ(keys.size(), list.size());
  // Frozen: another value would change the initial weights of every model.
  EXPECT_EQ(list[0].name, "embedding.weight");
  EXPECT_EQ(list[0].random_key, 11129983942117992498u);
}

// num_floating_point_operations of Megatron-LM for one token, spelled out:
// 6h·f·g·L + L·6·[h·d(n_q + 2n_kv) + n_q·d·h] + 6hV + s·L·6·n_q·d.
TEST(Flops, EqualTheFieldsFormula) {
  v1::JobSpec job = TinyJob();
  job.mutable_model()->set_num_query_groups(2);
  const ModelSpec spec = *Make(job);
  const double h = 96, f = 256, g = 3, layers = 2, d = 16, n_q = 6, n_kv = 2, vocab = 256, s = 32;
  EXPECT_DOUBLE_EQ(FlopsPerToken(spec, 32),
                   6 * h * f * g * layers + layers * 6 * (h * d * (n_q + 2 * n_kv) + n_q * d * h) +
                       6 * h * vocab + s * layers * 6 * n_q * d);
}

class HfConfig : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream in(std::string(MEGA_TEST_DATA) + "/models/llama/config.json");
    config_ = nlohmann::json::parse(in);
  }

  absl::StatusOr<v1::Model> Read(const std::string& text) {
    std::ofstream(folder_ + "/config.json") << text;
    return ReadHfConfig(folder_);
  }

  const mega::testing::TempDir dir_;
  const std::string folder_ = dir_.path();
  nlohmann::json config_;
};

TEST_F(HfConfig, BothSpellingsGiveTheSameModel) {
  const std::string model = std::string(MEGA_TEST_DATA) + "/models/llama";
  const v1::Model old_spelling = *ReadHfConfig(model);
  std::ifstream in(model + "/config_v5.json");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const v1::Model new_spelling = *Read(text);
  EXPECT_EQ(old_spelling.SerializeAsString(), new_spelling.SerializeAsString());
  EXPECT_EQ(old_spelling.num_layers(), 3);
  EXPECT_EQ(old_spelling.num_query_groups(), 2);
  EXPECT_EQ(old_spelling.head_dim(), 16);
  EXPECT_EQ(old_spelling.rope_theta(), 500000);
  EXPECT_EQ(old_spelling.vocab_size(), 384);
  EXPECT_EQ(old_spelling.norm_epsilon(), 1e-5);
  EXPECT_FALSE(old_spelling.tie_embeddings());
}

TEST_F(HfConfig, FillsOnlyWhatTheJobLeavesUnset) {
  v1::JobSpec job;
  job.mutable_model()->set_hf(std::string(MEGA_TEST_DATA) + "/models/llama");
  job.mutable_model()->set_rope_theta(10000);
  job.mutable_data()->set_seq_length(64);
  ASSERT_TRUE(FillFromHf(*job.mutable_model()).ok());
  const ModelSpec spec = *Make(job);
  EXPECT_EQ(CountParameters(spec), 286'368);
  EXPECT_EQ(spec.rope_theta, 10000);
  EXPECT_EQ(spec.max_position_embeddings, 256);
}

TEST_F(HfConfig, AJobWhoseConfigWasNotReadIsRefusedAndOneWhoseWasIsNot) {
  v1::JobMetadata metadata;
  metadata.set_name("x");
  v1::JobSpec job;
  job.mutable_model()->set_hf(std::string(MEGA_TEST_DATA) + "/models/llama");
  job.mutable_model()->set_num_layers(3);
  job.mutable_data()->add_paths("/text");
  job.mutable_data()->set_seq_length(64);
  job.mutable_training()->set_steps(1);
  job.mutable_training()->set_global_batch_size(1);
  job.mutable_optimizer()->set_lr(1e-3);
  const auto refused = spec::Resolve(metadata, job).violations;
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].field, "model.hf");
  EXPECT_THAT(refused[0].message, HasSubstr("was not read into model.hidden_size, model.ffn"));

  ASSERT_TRUE(FillFromHf(*job.mutable_model()).ok());
  const spec::Resolution good = spec::Resolve(metadata, job);
  EXPECT_TRUE(good.violations.empty()) << good.violations[0].message;
  EXPECT_EQ(good.spec.model().num_attention_heads(), job.model().num_attention_heads());
}

TEST_F(HfConfig, RefusesByNameWhatWouldChangeTheNumbers) {
  const std::vector<std::pair<std::string, nlohmann::json>> changes = {
      {"model_type", "qwen2"},
      {"hidden_act", "gelu"},
      {"attention_bias", true},
      {"mlp_bias", true},
      {"sliding_window", 16},
      {"attention_dropout", 0.1},
      {"partial_rotary_factor", 0.5},
      {"quantization_config", {{"bits", 4}}},
      {"layer_types", {"full_attention", "sliding_attention"}},
      {"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}},
      {"rope_parameters", {{"rope_type", "yarn"}, {"rope_theta", 1e4}}}};
  for (const auto& [key, value] : changes) {
    nlohmann::json config = config_;
    config[key] = value;
    const auto model = Read(config.dump());
    ASSERT_FALSE(model.ok()) << key;
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(key + " "));
    EXPECT_THAT(std::string(model.status().message()), ::testing::Not(HasSubstr("\n")));
  }
}

TEST_F(HfConfig, SaysEverythingThatIsMissingOrMistyped) {
  config_.erase("vocab_size");
  config_["num_hidden_layers"] = "three";
  config_["tie_word_embeddings"] = 1;
  const std::string message(Read(config_.dump()).status().message());
  EXPECT_THAT(message, HasSubstr("vocab_size is missing"));
  EXPECT_THAT(message, HasSubstr("num_hidden_layers is \"three\", not an integer"));
  EXPECT_THAT(message, HasSubstr("tie_word_embeddings is 1"));
}

TEST_F(HfConfig, SurvivesFilesThatAreNoConfig) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{"), std::string("\xff\xfe"),
        std::string(100000, '['), std::string((1 << 20) + 1, ' '), std::string("{\"a\":1e999}")})
    EXPECT_FALSE(Read(text).ok());
  EXPECT_EQ(ReadHfConfig(folder_ + "/nowhere").status().code(), absl::StatusCode::kNotFound);
}

// Case: a config.json of 500,000 brackets ended the coordinator, which printed the value back.
TEST_F(HfConfig, DeepNestingIsRefusedWhereverItStands) {
  constexpr int kDeep = 500'000;
  const std::string deep = std::string(kDeep, '[') + std::string(kDeep, ']');
  for (const std::string key : {"model_type", "sliding_window", "layer_types", "rope_scaling"}) {
    const auto model = Read("{\"" + key + "\":" + deep + "}");
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_THAT(std::string(model.status().message()), HasSubstr("nested more than 16 levels"));
  }
  EXPECT_TRUE(Read(config_.dump()).ok());
}

TEST_F(HfConfig, StopTokensAreNoneOneOrSeveral) {
  using Tokens = std::vector<int32_t>;
  for (const auto& [text, tokens] : {std::pair{"{}", Tokens{}},
                                     {R"({"eos_token_id": null})", Tokens{}},
                                     {R"({"eos_token_id": 2})", Tokens{2}},
                                     {R"({"eos_token_id": [128001, 128009]})", {128001, 128009}}}) {
    std::ofstream(folder_ + "/config.json") << text;
    EXPECT_EQ(*ReadHfStopTokens(folder_), tokens) << text;
  }
  for (const char* text : {R"({"eos_token_id": "end"})", R"({"eos_token_id": [2, -1]})",
                           R"({"eos_token_id": 4294967296})"}) {
    std::ofstream(folder_ + "/config.json") << text;
    EXPECT_EQ(ReadHfStopTokens(folder_).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// Case: a named pipe without a writer blocked the submit for ever.
TEST_F(HfConfig, APipeIsNoConfig) {
  ASSERT_EQ(mkfifo((folder_ + "/config.json").c_str(), 0600), 0);
  const auto model = ReadHfConfig(folder_);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("is not a regular file"));
}

TEST_F(HfConfig, HugeNumbersAreRefusedWithTheirKey) {
  config_["num_hidden_layers"] = 18446744073709551615u;
  v1::JobSpec job = TinyJob();
  *job.mutable_model() = *Read(config_.dump());
  EXPECT_THAT(std::string(Make(job).status().message()), HasSubstr("model.num_layers is -1"));
}

}  // namespace
}  // namespace mega::planner
