#include "coordinator/planner/spec/spec.h"

#include <cmath>
#include <functional>
#include <limits>

#include "coordinator/planner/spec/json_schema.h"
#include "coordinator/planner/spec/keys.h"
#include "coordinator/planner/spec/split.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/coordinator/planner/small_job.h"

namespace mega::spec {
namespace {

using mega::testing::SmallJob;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::JobMetadata GoodMetadata() {
  v1::JobMetadata metadata;
  metadata.set_name("llama-test-1");
  return metadata;
}

std::vector<std::string> Messages(const v1::JobSpec& spec,
                                  const v1::JobMetadata& metadata = GoodMetadata()) {
  std::vector<std::string> messages;
  for (const Violation& violation : Validate(metadata, ApplyDefaults(spec)))
    messages.push_back(violation.message);
  return messages;
}

TEST(Spec, AGoodSpecHasNoViolations) { EXPECT_THAT(Messages(SmallJob()), IsEmpty()); }

TEST(Spec, EveryDefaultIsReadableAndObeysItsOwnRule) {
  int defaults = 0;
  VisitKeys(v1::JobSpec(),
            [&](const google::protobuf::Message& parent,
                const google::protobuf::FieldDescriptor& field, const std::string& path) {
              const v1::KeyRule rule = RuleOf(field);
              if (rule.default_().empty()) return;
              ++defaults;
              std::unique_ptr<google::protobuf::Message> holder(parent.New());
              EXPECT_TRUE(SetFromText(*holder, field, rule.default_()).ok()) << path;
            });
  EXPECT_GT(defaults, 40);
  // All of them together are what AGoodSpecHasNoViolations validates.
}

TEST(Spec, DefaultsAreTypedAndOnlyFillWhatIsUnset) {
  v1::JobSpec spec = SmallJob();
  spec.mutable_optimizer()->set_beta1(0);  // 0 is a value
  const v1::JobSpec resolved = ApplyDefaults(spec);
  EXPECT_EQ(resolved.optimizer().beta1(), 0);
  EXPECT_EQ(resolved.optimizer().beta2(), 0.95);
  EXPECT_EQ(resolved.model().norm_epsilon(), 1e-5);
  EXPECT_EQ(resolved.training().seed(), 1234);
  EXPECT_EQ(resolved.resources().nodes().desired(), 1);
  EXPECT_EQ(resolved.health().hang().collective_timeout().seconds(), 60);
  EXPECT_TRUE(resolved.communication().overlap_grad_reduce());
  EXPECT_FALSE(resolved.model().has_vocab_size());
  EXPECT_FALSE(resolved.training().has_micro_batch_size());
  EXPECT_TRUE(resolved.has_profile());
}

TEST(Spec, DefaultsAreIdempotent) {
  const v1::JobSpec once = ApplyDefaults(SmallJob());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(once, ApplyDefaults(once)));
}

TEST(Spec, ReportsAllViolationsOfAnEmptySpecAtOnce) {
  EXPECT_THAT(Messages(v1::JobSpec()),
              ElementsAre("data.paths is empty; it is required (Text, JSONL or .bin/.idx files)",
                          "data.seq_length is not set; it is required (Tokens in a sample)",
                          "training.global_batch_size is not set; it is required (Samples in one "
                          "step over all ranks)",
                          "optimizer.lr is not set; it is required",
                          "training.steps is not set and neither is training.tokens; give one of "
                          "them",
                          "model.num_layers is not set; give it, or a Hugging Face folder in "
                          "model.hf",
                          "model.hidden_size is not set; give it, or a Hugging Face folder in "
                          "model.hf",
                          "model.num_attention_heads is not set; give it, or a Hugging Face folder "
                          "in model.hf"));
}

struct BadCase {
  const char* name;
  std::function<void(v1::JobSpec&)> edit;
  std::string message;
};

void PrintTo(const BadCase& bad, std::ostream* out) { *out << bad.name; }

class BadSpec : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadSpec, GivesExactlyThisMessage) {
  v1::JobSpec spec = SmallJob();
  GetParam().edit(spec);
  EXPECT_THAT(Messages(spec), ElementsAre(GetParam().message));
}

const double kInfinity = std::numeric_limits<double>::infinity();

INSTANTIATE_TEST_SUITE_P(
    Keys, BadSpec,
    ::testing::Values(
        BadCase{"ZeroSteps", [](v1::JobSpec& s) { s.mutable_training()->set_steps(0); },
                "training.steps is 0; choose at least 1 steps"},
        BadCase{"NegativeBatch",
                [](v1::JobSpec& s) { s.mutable_training()->set_global_batch_size(-4); },
                "training.global_batch_size is -4; choose at least 1"},
        BadCase{"HugeLayers",
                [](v1::JobSpec& s) {
                  s.mutable_model()->set_num_layers(std::numeric_limits<int64_t>::max());
                },
                "model.num_layers is 9223372036854775807; choose at most 10000"},
        BadCase{"RateIsNan", [](v1::JobSpec& s) { s.mutable_optimizer()->set_lr(std::nan("")); },
                "optimizer.lr is nan; give a finite number"},
        BadCase{"ClipIsInfinite",
                [](v1::JobSpec& s) { s.mutable_optimizer()->set_clip_grad(kInfinity); },
                "optimizer.clip_grad is inf; give a finite number"},
        BadCase{"BetaJustTooLarge", [](v1::JobSpec& s) { s.mutable_optimizer()->set_beta1(1); },
                "optimizer.beta1 is 1; choose at most 0.999999999"},
        BadCase{"UnknownWord", [](v1::JobSpec& s) { s.mutable_optimizer()->set_schedule("cosin"); },
                "optimizer.schedule is 'cosin'; choose cosine, linear or constant"},
        BadCase{"FeatureOfALaterRelease",
                [](v1::JobSpec& s) { s.mutable_precision()->set_dtype("bf16"); },
                "precision.dtype is bf16, which is not implemented yet; choose fp32"},
        BadCase{"TensorParallel",
                [](v1::JobSpec& s) { s.mutable_parallelism()->set_tensor_parallel_size(2); },
                "parallelism.tensor_parallel_size is 2, but tensor parallelism is not implemented "
                "yet; leave it out or give 1"},
        BadCase{"UnavailableNumber",
                [](v1::JobSpec& s) { s.mutable_memory()->set_efficient_fragmentation(2); },
                "memory.efficient_fragmentation is 2, which is not implemented yet; give another "
                "value"},
        BadCase{"UnavailableList", [](v1::JobSpec& s) { s.mutable_data()->add_blend(1); },
                "data.blend is set, but weighted blends are not implemented yet; leave it out"},
        BadCase{"EmptyPath", [](v1::JobSpec& s) { s.mutable_data()->add_paths(""); },
                "data.paths[1] is empty; give a value (Text, JSONL or .bin/.idx files) or leave it "
                "out"},
        BadCase{"ControlCharacter",
                [](v1::JobSpec& s) { s.mutable_checkpoint()->set_directory("a\nb"); },
                "checkpoint.directory holds the control character 0x0a; remove it"},
        BadCase{"ShortTimeout",
                [](v1::JobSpec& s) {
                  s.mutable_health()->mutable_hang()->mutable_collective_timeout()->set_nanos(1000);
                },
                "health.hang.collective_timeout is 1e-06s; choose at least 1 seconds"},
        BadCase{"NoStepTimeout",
                [](v1::JobSpec& s) {
                  s.mutable_health()->mutable_hang()->mutable_step_timeout()->set_nanos(1000);
                },
                "health.hang.step_timeout is 1e-06s; choose at least 1 seconds"},
        BadCase{"StragglersMean",
                [](v1::JobSpec& s) { s.mutable_health()->mutable_straggler()->set_threshold(1); },
                "health.straggler.threshold is 1; choose at least 1.01"},
        BadCase{"InvalidDuration",
                [](v1::JobSpec& s) {
                  s.mutable_health()->mutable_hang()->mutable_collective_timeout()->set_seconds(
                      std::numeric_limits<int64_t>::max());
                },
                "health.hang.collective_timeout is not a valid duration; write it as in 60s"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    BetweenKeys, BadSpec,
    ::testing::Values(
        BadCase{"StepsAndTokens", [](v1::JobSpec& s) { s.mutable_training()->set_tokens(1000); },
                "training.tokens is 1000 and training.steps is 10; give one of them"},
        BadCase{"MicroAboveGlobal",
                [](v1::JobSpec& s) { s.mutable_training()->set_micro_batch_size(64); },
                "training.micro_batch_size is 64 but training.global_batch_size is 12; choose at "
                "most 12"},
        BadCase{"MoreTokensThanCanBeCounted",
                [](v1::JobSpec& s) {
                  s.mutable_training()->set_steps(1'000'000'000'000);
                  s.mutable_training()->set_global_batch_size(16777216);
                },
                "training.steps is 1000000000000, which makes 5.4e+20 tokens with "
                "training.global_batch_size 16777216 and data.seq_length 32; choose at most "
                "1862645149"},
        BadCase{"MoreStepsThanCanBeCountedWrittenAsTokens",
                [](v1::JobSpec& s) {
                  s.mutable_training()->clear_steps();
                  s.mutable_training()->set_tokens(99'999'000'000'000'000);
                  s.mutable_training()->set_global_batch_size(12);
                },
                "training.tokens is 99999000000000000, which makes 260414062500000 steps with "
                "training.global_batch_size 12 and data.seq_length 32; choose at most "
                "384000000000000"},
        BadCase{"MinRateAboveRate", [](v1::JobSpec& s) { s.mutable_optimizer()->set_min_lr(0.5); },
                "optimizer.min_lr is 0.5 but optimizer.lr is 0.001; choose at most 0.001"},
        BadCase{"WarmupAboveSteps",
                [](v1::JobSpec& s) { s.mutable_optimizer()->set_warmup_steps(11); },
                "optimizer.warmup_steps is 11 but the job has 10 steps; choose at most 10"},
        BadCase{"WarmupAboveStepsOfTokens",
                [](v1::JobSpec& s) {
                  s.mutable_training()->clear_steps();
                  s.mutable_training()->set_tokens(12 * 32 * 3 + 1);
                  s.mutable_optimizer()->set_warmup_steps(5);
                },
                "optimizer.warmup_steps is 5 but the job has 4 steps; choose at most 4"},
        BadCase{"GroupsDoNotDivideHeads",
                [](v1::JobSpec& s) {
                  s.mutable_model()->set_num_attention_heads(12);
                  s.mutable_model()->set_hidden_size(96);
                  s.mutable_model()->set_num_query_groups(5);
                },
                "model.num_query_groups is 5 but model.num_attention_heads is 12; choose 1, 2, 3, "
                "4, 6 or 12"},
        BadCase{"HeadsDoNotDivideHidden",
                [](v1::JobSpec& s) { s.mutable_model()->set_hidden_size(65); },
                "model.hidden_size is 65 but model.num_attention_heads is 4; choose a multiple of "
                "4, or give model.head_dim"},
        BadCase{"OddHead", [](v1::JobSpec& s) { s.mutable_model()->set_head_dim(15); },
                "model.head_dim is 15, but rotary embedding turns pairs; choose an even number"},
        BadCase{"SequenceLongerThanModel",
                [](v1::JobSpec& s) { s.mutable_model()->set_max_position_embeddings(16); },
                "data.seq_length is 32 but model.max_position_embeddings is 16; choose at most 16"},
        BadCase{"VocabularyBelowTokenizer",
                [](v1::JobSpec& s) { s.mutable_model()->set_vocab_size(100); },
                "model.vocab_size is 100 but data.tokenizer byte makes 256 different tokens; "
                "choose at least 256"},
        BadCase{"VocabularyBelowTokenizerOfJsonLines",
                [](v1::JobSpec& s) {
                  s.mutable_data()->set_paths(0, "/data/more.ndjson");
                  s.mutable_model()->set_vocab_size(100);
                },
                "model.vocab_size is 100 but data.tokenizer byte makes 256 different tokens; "
                "choose at least 256"},
        BadCase{"SplitOfWords", [](v1::JobSpec& s) { s.mutable_data()->set_split("90,ten"); },
                "data.split '90,ten' has the share 'ten', which is not a number from 0 to 1e18; "
                "give the shares of train, validation and test, as in 949,50,1"},
        BadCase{"EvaluationWithoutValidationText",
                [](v1::JobSpec& s) {
                  s.mutable_data()->set_split("1,0,0");
                  s.mutable_training()->set_eval_steps(3);
                },
                "data.split '1,0,0' leaves nothing for validation but training.eval_steps is 3; "
                "give a second share, data.validation.paths, or training.eval_steps 0"},
        BadCase{"SplitWithoutTraining", [](v1::JobSpec& s) { s.mutable_data()->set_split("0,1"); },
                "data.split '0,1' gives nothing to training; give the shares of train, validation "
                "and test, as in 949,50,1"},
        BadCase{"ReplicasAboveDevices",
                [](v1::JobSpec& s) {
                  s.mutable_parallelism()->set_data_parallel_size(8);
                  s.mutable_resources()->set_devices_per_node(3);
                  s.mutable_resources()->mutable_nodes()->set_desired(2);
                },
                "parallelism.data_parallel_size is 8 but resources.nodes.desired × "
                "resources.devices_per_node is 2 × 3; choose at most 6, or more devices"},
        BadCase{"MoreReplicasThanAJobMayHave",
                [](v1::JobSpec& s) { s.mutable_parallelism()->set_data_parallel_size(65'537); },
                "parallelism.data_parallel_size is 65537, but a job has at most 65536 devices; "
                "choose at most 65536"},
        // Each key is within its own bounds.
        BadCase{"MoreDevicesOfAllNodesThanAJobMayHave",
                [](v1::JobSpec& s) {
                  s.mutable_resources()->set_devices_per_node(4096);
                  s.mutable_resources()->mutable_nodes()->set_desired(1'048'576);
                },
                "resources.devices_per_node is 4096 and resources.nodes.desired is 1048576, but a "
                "job has at most 65536 devices; choose fewer nodes or devices, or give "
                "parallelism.data_parallel_size"},
        BadCase{"MoreNodesThanAJobMayHaveDevices",
                [](v1::JobSpec& s) { s.mutable_resources()->mutable_nodes()->set_desired(65'537); },
                "resources.nodes.desired is 65537, but a job has at most 65536 devices, one or "
                "more on each node; choose at most 65536"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Spec, AnInertValueOfAnUnavailableKeyIsAccepted) {
  v1::JobSpec spec = SmallJob();
  spec.mutable_parallelism()->set_tensor_parallel_size(1);
  spec.mutable_parallelism()->set_sequence_parallel(false);
  spec.mutable_model()->set_num_experts(0);
  EXPECT_THAT(Messages(spec), IsEmpty());
}

TEST(Spec, AKeyOutOfBoundsIsNotJudgedAgainstOthers) {
  v1::JobSpec spec = SmallJob();
  spec.mutable_training()->set_global_batch_size(0);
  spec.mutable_training()->set_micro_batch_size(4);
  EXPECT_THAT(Messages(spec), ElementsAre("training.global_batch_size is 0; choose at least 1"));
}

TEST(Spec, RefusesNamesThatAreNoDnsLabels) {
  for (const char* name : {"", "-a", "a-", "A", "a_b", "a.b", "ü"}) {
    v1::JobMetadata metadata = GoodMetadata();
    metadata.set_name(name);
    EXPECT_THAT(Messages(SmallJob(), metadata), ElementsAre(HasSubstr("metadata.name"))) << name;
  }
  v1::JobMetadata metadata = GoodMetadata();
  metadata.set_name(std::string(64, 'a'));
  metadata.set_namespace_("Team");
  EXPECT_THAT(Messages(SmallJob(), metadata),
              ElementsAre(HasSubstr("metadata.name"), HasSubstr("metadata.namespace is 'Team'")));
}

TEST(Spec, BoundsLabels) {
  v1::JobMetadata metadata = GoodMetadata();
  (*metadata.mutable_labels())["team.example/owner"] = "research_1.a";
  EXPECT_THAT(Messages(SmallJob(), metadata), IsEmpty());
  (*metadata.mutable_labels())["a b"] = "x";
  (*metadata.mutable_labels())["long"] = std::string(64, 'x');
  EXPECT_THAT(Messages(SmallJob(), metadata),
              ElementsAre(HasSubstr("has the key 'a b'"), HasSubstr("metadata.labels.long is")));
  for (int i = 0; i < 100; ++i) metadata.mutable_labels()->insert({fmt::format("k{}", i), "v"});
  EXPECT_THAT(Messages(SmallJob(), metadata), ElementsAre(HasSubstr("give at most 64")));
}

TEST(Spec, ToStatusHasOneLineAViolation) {
  EXPECT_TRUE(ToStatus({}).ok());
  const absl::Status status = ToStatus({{"a", "a is 1"}, {"b", "b is 2"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "a is 1\nb is 2");
}

TEST(Spec, TotalStepsNeverOverflow) {
  v1::JobSpec spec = SmallJob();
  EXPECT_EQ(TotalSteps(spec), 10);
  spec.mutable_training()->clear_steps();
  EXPECT_EQ(TotalSteps(spec), 0);
  spec.mutable_training()->set_tokens(1'000'000'000'000'000'000);
  spec.mutable_training()->set_global_batch_size(16777216);
  spec.mutable_data()->set_seq_length(1073741824);
  EXPECT_EQ(TotalSteps(spec), 56);  // 1e18 / 2^54 = 55.5
}

TEST(Split, AddsUpToOne) {
  EXPECT_EQ(*ParseSplit("949,50,1"), (std::array<double, 3>{0.949, 0.05, 0.001}));
  EXPECT_EQ(*ParseSplit("3,1"), (std::array<double, 3>{0.75, 0.25, 0}));
  EXPECT_EQ(*ParseSplit("1"), (std::array<double, 3>{1, 0, 0}));
  for (const char* bad : {"", ",", "1,2,3,4", "nan", "inf,1", "-1,2", "1,-2", "1e300,1"})
    EXPECT_FALSE(ParseSplit(bad).ok()) << bad;
}

TEST(JsonSchema, DescribesEveryKeyOfTheJobFile) {
  const auto schema = JsonSchema();
  int keys = 0;
  VisitKeys(v1::JobSpec(), [&](const auto&, const auto&, const std::string& path) {
    std::string pointer = "/properties/spec";
    for (size_t at = 0; at != std::string::npos;) {
      const size_t dot = path.find('.', at);
      pointer += "/properties/";
      pointer += path.substr(at, dot == std::string::npos ? dot : dot - at);
      at = dot == std::string::npos ? dot : dot + 1;
    }
    EXPECT_TRUE(schema.contains(nlohmann::ordered_json::json_pointer(pointer))) << pointer;
    ++keys;
  });
  EXPECT_GT(keys, 90);
}

TEST(JsonSchema, CarriesBoundsWordsDefaultsAndRefusals) {
  const auto spec = JsonSchema()["properties"]["spec"];
  EXPECT_THAT(spec["required"].dump(), R"(["data","training","optimizer"])");
  EXPECT_EQ(spec["properties"]["optimizer"]["properties"]["schedule"].dump(),
            R"({"anyOf":[{"enum":["cosine","linear","constant"]},{"const":"auto"}],)"
            R"("default":"cosine"})");
  EXPECT_EQ(spec["properties"]["parallelism"]["properties"]["tensor_parallel_size"]["enum"].dump(),
            R"([1,"auto"])");
  EXPECT_EQ(spec["properties"]["data"]["properties"]["paths"]["minItems"], 1);
  EXPECT_EQ(spec["properties"]["model"]["properties"]["num_layers"]["anyOf"][0]["maximum"], 10000);
  EXPECT_EQ(spec["additionalProperties"], false);
}

TEST(Recovery, RulesThatCanBeReadPass) {
  v1::JobSpec spec = SmallJob();
  v1::Recovery& recovery = *spec.mutable_recovery();
  for (const char* rule : {"exit 1 -> retry", "exit 93 -> stop", "signal 9 -> spare",
                           "signal SIGBUS -> stop", "signal BUS->stop", "log a -> b -> retry"})
    recovery.add_rules(rule);
  for (const char* rung : {"retry", "spare", "shrink", "stop"}) recovery.add_ladder(rung);
  spec.mutable_resources()->mutable_nodes()->set_min(2);
  spec.mutable_resources()->mutable_nodes()->set_desired(4);
  spec.mutable_elastic()->set_on_gain("next_checkpoint");
  recovery.mutable_budgets()->set_spare(0);
  recovery.mutable_budgets()->mutable_window()->set_seconds(60);
  EXPECT_THAT(Messages(spec), IsEmpty());
}

TEST(Recovery, WhoMayShrinkOrGrowNeedsNodesForIt) {
  v1::JobSpec spec = SmallJob();
  spec.mutable_elastic()->set_on_loss("shrink");
  spec.mutable_resources()->mutable_nodes()->set_desired(4);
  EXPECT_THAT(Messages(spec), ElementsAre(HasSubstr("must be less than resources.nodes.desired")));
  spec.mutable_resources()->mutable_nodes()->set_min(5);
  EXPECT_THAT(Messages(spec), ElementsAre(HasSubstr("is 5 but resources.nodes.desired is 4")));
  spec.mutable_resources()->mutable_nodes()->set_min(1);
  EXPECT_THAT(Messages(spec), IsEmpty());
  spec.mutable_resources()->mutable_nodes()->set_max(3);
  EXPECT_THAT(Messages(spec), ElementsAre(HasSubstr("is 3 but resources.nodes.desired is 4")));
  v1::JobSpec grows = SmallJob();
  grows.mutable_elastic()->set_on_gain("next_checkpoint");
  EXPECT_THAT(Messages(grows), ElementsAre(HasSubstr("never runs on fewer nodes")));
}

TEST(Recovery, WhatCannotBeDoneIsRefusedWithTheWayOut) {
  const std::pair<const char*, const char*> cases[] = {
      {"exit 1", "recovery.rules[0] has no '->'; write 'exit 17 -> stop'"},
      {"exit 0 -> stop", "names the exit code '0', which is not 1 to 255"},
      {"exit many -> stop", "names the exit code 'many'"},
      {"signal SIGNONE -> stop", "names the signal 'SIGNONE'"},
      {"signal 65 -> stop", "names the signal '65'"},
      {"log -> stop", "says nothing after 'log'"},
      {"exit 1 ->", "says nothing after '->'"},
      {"when 1 -> stop", "begins with 'when', which is none of exit, signal and log"},
      {"exit 1 -> reboot", "takes the rung 'reboot'; choose retry, spare"},
      {"exit 1 -> roll_back", "takes the rung 'roll_back'; choose"},
      {"exit 93 -> retry", "takes retry after exit code 93, which always stops the job"},
      {"exit 64 -> spare", "takes spare after exit code 64"},
  };
  for (const auto& [rule, message] : cases) {
    v1::JobSpec spec = SmallJob();
    spec.mutable_recovery()->add_rules(rule);
    EXPECT_THAT(Messages(spec), ElementsAre(HasSubstr(message))) << rule;
  }
  const auto ladder = [](std::vector<const char*> rungs) {
    v1::JobSpec spec = SmallJob();
    for (const char* rung : rungs) spec.mutable_recovery()->add_ladder(rung);
    return Messages(spec);
  };
  EXPECT_THAT(ladder({"retry", "retry"}), ElementsAre(HasSubstr("is retry for the second time")));
  EXPECT_THAT(ladder({"stop", "retry"}), ElementsAre(HasSubstr("put stop last")));
  EXPECT_THAT(ladder({"retry", "roll_back"}), ElementsAre(HasSubstr("not implemented yet")));
  v1::JobSpec spec = SmallJob();
  spec.mutable_recovery()->add_ladder("retry");
  spec.mutable_recovery()->mutable_budgets()->set_spare(3);
  EXPECT_THAT(Messages(spec), ElementsAre(HasSubstr("neither recovery.ladder nor recovery.rules")));
}

}  // namespace
}  // namespace mega::spec
