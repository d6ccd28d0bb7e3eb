#include "cli/spec/job_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/spec/job_yaml_print.h"
#include "coordinator/planner/spec/spec.h"

namespace mega::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Four lines; what follows is at the level of spec's sections.
constexpr char kEnvelope[] =
    "apiVersion: mega/v1\n"
    "kind: TrainingJob\n"
    "metadata: {name: test}\n"
    "spec:\n";

JobText Text(std::string text, std::vector<std::string> overrides = {}) {
  return {.source = "job.yaml",
          .folder = "/jobs",
          .text = std::move(text),
          .overrides = std::move(overrides)};
}

std::vector<std::string> Messages(const std::vector<Problem>& problems) {
  std::vector<std::string> messages;
  for (const Problem& problem : problems) messages.push_back(ToText(problem));
  return messages;
}

std::vector<std::string> Problems(const std::string& sections,
                                  std::vector<std::string> overrides = {}) {
  return Messages(ParseJob(Text(kEnvelope + sections, std::move(overrides))).problems);
}

constexpr char kGood[] =
    "  model: {num_layers: 2, hidden_size: 64, ffn_hidden_size: 128, num_attention_heads: 4}\n"
    "  data: {paths: [a.txt, /b.txt], seq_length: 32}\n"
    "  training: {steps: 20, global_batch_size: 8}\n"
    "  optimizer: {lr: 1e-3}\n";

TEST(JobYaml, GoodFileGivesItsSpecAndNothingElse) {
  const ParsedJob parsed = ParseAndCheckJob(Text(kEnvelope + std::string(kGood)));
  EXPECT_THAT(Messages(parsed.problems), IsEmpty());
  EXPECT_EQ(parsed.job.metadata.name(), "test");
  EXPECT_EQ(parsed.job.spec.model().hidden_size(), 64);
  EXPECT_EQ(parsed.job.spec.optimizer().lr(), 1e-3);
  EXPECT_FALSE(parsed.job.spec.optimizer().has_min_lr()) << "defaults are not the reader's work";
}

// Case: the coordinator could not be sent the job, and megactl said nothing but libprotobuf's
// words.
TEST(JobYaml, APathInAFolderThatIsNotUtf8IsRefused) {
  JobText text = Text(kEnvelope + std::string(kGood));
  text.folder = "/u\xFF";
  EXPECT_THAT(
      Messages(ParseJob(text).problems),
      ElementsAre(::testing::HasSubstr("data.paths[0]: 'a.txt' is /u?/a.txt, which is not UTF-8")));
}

TEST(JobYaml, RelativePathsCountFromTheJobFile) {
  const ParsedJob parsed =
      ParseJob(Text(kEnvelope + std::string(kGood), {"checkpoint.directory=../out"}));
  EXPECT_THAT(parsed.job.spec.data().paths(), ElementsAre("/jobs/a.txt", "/b.txt"));
  EXPECT_EQ(parsed.job.spec.checkpoint().directory(), "/out");
}

struct BadText {
  const char* text;
  std::vector<std::string> problems;
};

// What a file as a whole can have wrong.
TEST(JobYaml, RefusesBadFilesByName) {
  const std::vector<BadText> cases = {
      {"", {"job.yaml:1:1: the file is empty; see deploy/examples for job files"}},
      {"# only a comment\n",
       {"job.yaml:1:1: the file is empty; see deploy/examples for job files"}},
      {"- a\n- b\n",
       {"job.yaml:1:1: a job file is a section with apiVersion, kind, metadata and spec, but this "
        "is a list"}},
      {"a: b\n---\nc: d\n", {"job.yaml:3:1: a second document; such a file holds one"}},
      {"a: [1, 2\n", {"job.yaml:2:1: not YAML: end of sequence flow not found"}},
      {"a: \xff\n",
       {"job.yaml:1:4: byte 0xff is not text; write UTF-8 without control characters"}},
      {"a: b\x01\n",
       {"job.yaml:1:5: byte 0x01 is not text; write UTF-8 without control characters"}},
      {"a: *nowhere\n", {"job.yaml:1:4: not YAML: the referenced anchor is not defined"}},
      {"a: &x [*x]\n", {"job.yaml:1:8: an alias inside the node that it names"}},
      {"a: !!binary abc\n",
       {"job.yaml:1:4: the tag tag:yaml.org,2002:binary is not supported; write the value alone"}},
      {"{}\n",
       {"job.yaml: apiVersion is missing; write 'apiVersion: mega/v1'",
        "job.yaml: kind is missing; write 'kind: TrainingJob'",
        "job.yaml: spec is missing; it holds model, data, training and the rest"}},
      {"apiVersion: mega/v2\nkind: Job\nspec:\n",
       {"job.yaml:1:1: apiVersion is 'mega/v2'; write 'apiVersion: mega/v1'",
        "job.yaml:2:1: kind is 'Job'; write 'kind: TrainingJob'"}},
      {"apiVersion: mega/v1\nkind: TrainingJob\nmetdata: {name: x}\nspec:\n",
       {"job.yaml:3:1: metdata is not a key of a job file; did you mean metadata?"}},
      {"apiVersion: mega/v1\nkind: TrainingJob\nspec:\ntraining: {steps: 1}\n",
       {"job.yaml:4:1: training is not a key of a job file; did you mean spec.training?"}},
      {"apiVersion: mega/v1\nkind: TrainingJob\nspec:\nkind: TrainingJob\n",
       {"job.yaml:4:1: kind is given twice (first on line 2); keep one"}},
      {"apiVersion: mega/v1\nkind: TrainingJob\nspec: 5\n",
       {"job.yaml:3:1: spec must be a section but is '5'"}},
      {"apiVersion: mega/v1\nkind: TrainingJob\nmetadata: {labels: [a]}\nspec:\n",
       {"job.yaml:3:12: metadata.labels must be a section of labels but is a list"}},
      {"apiVersion: mega/v1\nkind: TrainingJob\nmetadata: {labels: {a: [b]}}\nspec:\n",
       {"job.yaml:3:21: metadata.labels.a must be text but is a list"}},
      {"apiVersion: mega/v1\nkind: TrainingJob\n[a, b]: c\nspec:\n",
       {"job.yaml:3:1: the file has a key that is no word but a list"}},
  };
  for (const BadText& bad : cases)
    EXPECT_EQ(Messages(ParseJob(Text(bad.text)).problems), bad.problems) << bad.text;
}

// What a key can have wrong. Line 5 is the first of the section.
TEST(JobYaml, RefusesBadKeysAndTypesByLineAndPath) {
  const std::vector<BadText> cases = {
      // unknown
      {"  training: {stepz: 3}\n",
       {"job.yaml:5:14: training.stepz is not a key; did you mean training.steps?"}},
      {"  trainning: {steps: 3}\n",
       {"job.yaml:5:3: trainning is not a key; did you mean training?"}},
      {"  training: {lr: 3}\n",
       {"job.yaml:5:14: training.lr is not a key; did you mean optimizer.lr?"}},
      {"  model: {numLayers: 3}\n",
       {"job.yaml:5:11: model.numLayers is not a key; did you mean model.num_layers?"}},
      {"  model: {num-layers: 3}\n",
       {"job.yaml:5:11: model.num-layers is not a key; did you mean model.num_layers?"}},
      {"  optimizer: {wieght_decay: 3}\n",
       {"job.yaml:5:15: optimizer.wieght_decay is not a key; did you mean "
        "optimizer.weight_decay?"}},
      {"  elastic: {qqqqqqq: 3}\n",
       {"job.yaml:5:13: elastic.qqqqqqq is not a key; the keys here are on_loss, cooldown, "
        "shrink_after, on_gain"}},
      {"  health: {hang: {timeout: 3}}\n",
       {"job.yaml:5:19: health.hang.timeout is not a key; the keys here are collective_timeout, "
        "step_timeout, first_step_timeout, checkpoint_timeout"}},
      {"  elastic: {<<: {a: b}}\n",
       {"job.yaml:5:13: elastic.<< is not a key; merge keys are not supported, write the keys "
        "out"}},
      // twice
      {"  training:\n    steps: 1\n    steps: 2\n",
       {"job.yaml:7:5: training.steps is given twice (first on line 6); keep one"}},
      {"  training: {steps: 1}\n  training: {seed: 2}\n",
       {"job.yaml:6:3: training is given twice (first on line 5); keep one"}},
      // of another kind
      {"  training: 5\n", {"job.yaml:5:3: training must be a section but is '5'"}},
      {"  training: [steps]\n", {"job.yaml:5:3: training must be a section but is a list"}},
      {"  training: {steps: [1]}\n",
       {"job.yaml:5:21: training.steps must be a whole number but is a list"}},
      {"  training: {steps: {a: 1}}\n",
       {"job.yaml:5:21: training.steps must be a whole number but is a section"}},
      {"  training: {steps: }\n",
       {"job.yaml:5:14: training.steps has no value; give one, write auto, or drop the key"}},
      {"  training: {steps: ~}\n",
       {"job.yaml:5:14: training.steps has no value; give one, write auto, or drop the key"}},
      {"  data: {paths: a.txt}\n",
       {"job.yaml:5:10: data.paths must be a list of text but is 'a.txt'; write [a.txt]"}},
      {"  data: {paths: [[a]]}\n",
       {"job.yaml:5:18: data.paths[0] must be one value but is a list"}},
      {"  data: {paths: ['']}\n", {"job.yaml:5:18: data.paths[0]: \"\" is no path"}},
      {"  data: {split: \"a\\x07\"}\n",
       {"job.yaml:5:17: data.split holds a control character; keep to one line of text"}},
      // whole numbers
      {"  training: {steps: many}\n",
       {"job.yaml:5:21: training.steps: 'many' is not a whole number (such as 1000, 500k or "
        "1.5B)"}},
      {"  training: {steps: 1.5}\n",
       {"job.yaml:5:21: training.steps: '1.5' is not a whole number (such as 1000, 500k or 1.5B)"}},
      {"  training: {steps: 010}\n",
       {"job.yaml:5:21: training.steps: '010' starts with a zero, which other tools read as octal; "
        "drop it"}},
      {"  training: {steps: 99999999999999999999}\n",
       {"job.yaml:5:21: training.steps: '99999999999999999999' does not fit 64 bits; at most "
        "9223372036854775807"}},
      {"  training: {steps: 1e300}\n",
       {"job.yaml:5:21: training.steps: '1e300' is not a whole number (such as 1000, 500k or "
        "1.5B)"}},
      {"  training: {steps: 9999999999T}\n",
       {"job.yaml:5:21: training.steps: '9999999999T' does not fit 64 bits; at most "
        "9223372036854775807"}},
      {"  training: {tokens: 3Gi}\n",
       {"job.yaml:5:22: training.tokens: '3Gi' is not a whole number (such as 1000, 500k or "
        "1.5B)"}},
      {"  training: {seed: 0x10}\n",
       {"job.yaml:5:20: training.seed: '0x10' is not a whole number"}},
      {"  training: {seed: 5k}\n", {"job.yaml:5:20: training.seed: '5k' is not a whole number"}},
      {"  training: {seed: \"5\"}\n",
       {"job.yaml:5:20: training.seed: \"5\" is quoted text; write it without the quotes"}},
      {"  training: {seed: true}\n",
       {"job.yaml:5:20: training.seed: 'true' is not a whole number"}},
      // numbers
      {"  optimizer: {lr: fast}\n",
       {"job.yaml:5:19: optimizer.lr: 'fast' is not a number (such as 0.1, 3e-4)"}},
      {"  optimizer: {lr: .nan}\n",
       {"job.yaml:5:19: optimizer.lr: '.nan' is not a number (such as 0.1, 3e-4)"}},
      {"  optimizer: {lr: nan}\n",
       {"job.yaml:5:19: optimizer.lr: 'nan' is not a number (such as 0.1, 3e-4)"}},
      {"  optimizer: {lr: inf}\n",
       {"job.yaml:5:19: optimizer.lr: 'inf' is not a number (such as 0.1, 3e-4)"}},
      {"  optimizer: {lr: 1e999}\n",
       {"job.yaml:5:19: optimizer.lr: '1e999' is beyond what a double holds"}},
      {"  optimizer: {lr: 1,5}\n",
       {"job.yaml:5:21: optimizer.5 is not a key; the keys here are name, lr, min_lr, schedule, "
        "warmup_steps, weight_decay, beta1, beta2, eps, clip_grad"}},
      // truth
      {"  model: {tie_embeddings: yes}\n",
       {"job.yaml:5:27: model.tie_embeddings: 'yes' is neither true nor false"}},
      {"  model: {tie_embeddings: 1}\n",
       {"job.yaml:5:27: model.tie_embeddings: '1' is neither true nor false"}},
      {"  model: {tie_embeddings: 'true'}\n",
       {"job.yaml:5:27: model.tie_embeddings: \"true\" is quoted text; write it without the "
        "quotes"}},
      // time
      {"  health: {hang: {collective_timeout: soon}}\n",
       {"job.yaml:5:39: health.hang.collective_timeout: 'soon' is no span of time (such as 30s, "
        "2h, 1h30m)"}},
      {"  health: {hang: {collective_timeout: 1h30}}\n",
       {"job.yaml:5:39: health.hang.collective_timeout: '1h30' is no span of time (such as 30s, "
        "2h, 1h30m)"}},
      {"  health: {hang: {collective_timeout: 0.0000000001s}}\n",
       {"job.yaml:5:39: health.hang.collective_timeout: '0.0000000001s' is finer than a "
        "nanosecond"}},
      {"  health: {hang: {collective_timeout: 999999999d}}\n",
       {"job.yaml:5:39: health.hang.collective_timeout: '999999999d' is longer than 292 years"}},
  };
  for (const BadText& bad : cases) EXPECT_EQ(Problems(bad.text), bad.problems) << bad.text;
}

// It would do nothing.
TEST(JobYaml, WhatTheCoordinatorSetsIsNoKey) {
  const auto problems = [](const std::string& metadata, std::vector<std::string> overrides = {}) {
    return Messages(ParseJob(Text("apiVersion: mega/v1\nkind: TrainingJob\nmetadata: {" + metadata +
                                      "}\nspec: {}\n",
                                  std::move(overrides)))
                        .problems);
  };
  EXPECT_THAT(problems("name: test, owner: ada"),
              ElementsAre("job.yaml:3:24: metadata.owner is not a key of a job file: the "
                          "coordinator sets it; drop it"));
  EXPECT_THAT(problems("name: test", {"metadata.owner=ada"}),
              ElementsAre("--set metadata.owner=ada: metadata.owner is not a key of a job file: "
                          "the coordinator sets it; drop it"));
  EXPECT_THAT(problems("qqqqqq: test"), ElementsAre("job.yaml:3:12: metadata.qqqqqq is not a key; "
                                                    "the keys here are name, namespace, labels"));
  v1::JobMetadata metadata;
  metadata.set_name("test");
  metadata.set_owner("ada");
  EXPECT_THAT(PrintJob(metadata, {}), ::testing::Not(HasSubstr("owner")));
}

TEST(JobYaml, TellsAllProblemsAtOnce) {
  EXPECT_THAT(
      Problems("  training: {stepz: 3, seed: x}\n  dataa:\n  optimizer: {lr: y}\n"),
      ElementsAre("job.yaml:5:14: training.stepz is not a key; did you mean training.steps?",
                  "job.yaml:5:30: training.seed: 'x' is not a whole number",
                  "job.yaml:6:3: dataa is not a key; did you mean data?",
                  "job.yaml:7:19: optimizer.lr: 'y' is not a number (such as 0.1, 3e-4)"));
}

// A typing error hides no rule that another key breaks, and brings no error of its own beside it.
TEST(JobYaml, TellsRulesBesideTypes) {
  const std::string text = kEnvelope + std::string(kGood) + "  checkpoint:\n    keep: 0\n";
  const ParsedJob parsed = ParseAndCheckJob(
      Text(text, {"optimizer.lr=abc", "model.hidden_size=wide", "training.stepz=3"}));
  EXPECT_THAT(Messages(parsed.problems),
              ElementsAre(HasSubstr("optimizer.lr: 'abc' is not a number"),
                          HasSubstr("model.hidden_size: 'wide'"), HasSubstr("training.stepz"),
                          HasSubstr("checkpoint.keep is 0")));
}

TEST(JobYaml, ValidatorsViolationsGetTheLineOfTheirKey) {
  const std::string text = kEnvelope + std::string(kGood) + "  checkpoint:\n    keep: 0\n";
  const ParsedJob parsed = ParseAndCheckJob(Text(text, {"parallelism.tensor_parallel_size=2"}));
  EXPECT_THAT(Messages(parsed.problems),
              ElementsAre("--set parallelism.tensor_parallel_size=2: "
                          "parallelism.tensor_parallel_size is 2, but tensor parallelism is not "
                          "implemented yet; leave it out or give 1",
                          "job.yaml:10:5: checkpoint.keep is 0; choose at least 1"));
}

TEST(JobYaml, MissingRequiredKeyPointsToItsSection) {
  const ParsedJob parsed = ParseAndCheckJob(Text(
      kEnvelope + std::string("  model: {num_layers: 2, hidden_size: 64, ffn_hidden_size: 128, "
                              "num_attention_heads: 4}\n"
                              "  data: {paths: [a.txt], seq_length: 32}\n"
                              "  training:\n    steps: 20\n  optimizer: {lr: 1}\n")));
  EXPECT_THAT(Messages(parsed.problems),
              ElementsAre("job.yaml:7:3: training.global_batch_size is not set; it is required "
                          "(Samples in one step over all ranks)"));
}

TEST(JobYaml, UnitsAreExact) {
  const ParsedJob parsed = ParseJob(
      Text(kEnvelope + std::string("  training: {tokens: 1.5T, eval_interval: 500k, steps: 1e3}\n"
                                   "  health: {hang: {collective_timeout: 1h30m}}\n")));
  EXPECT_THAT(Messages(parsed.problems), IsEmpty());
  EXPECT_EQ(parsed.job.spec.training().tokens(), 1'500'000'000'000);
  EXPECT_EQ(parsed.job.spec.training().eval_interval(), 500'000);
  EXPECT_EQ(parsed.job.spec.training().steps(), 1'000);
  EXPECT_EQ(parsed.job.spec.health().hang().collective_timeout().seconds(), 5'400);
}

TEST(JobYaml, AutoAndEmptySectionsAreUnset) {
  const ParsedJob parsed = ParseJob(Text(
      kEnvelope + std::string("  training: {micro_batch_size: auto}\n  communication:\n"
                              "  memory: {recompute_modules: auto}\n  data: {split: 'auto'}\n")));
  EXPECT_THAT(Messages(parsed.problems), IsEmpty());
  EXPECT_FALSE(parsed.job.spec.training().has_micro_batch_size());
  EXPECT_FALSE(parsed.job.spec.has_communication());
  EXPECT_EQ(parsed.job.spec.data().split(), "auto") << "quoted, it is a word like any other";
}

TEST(JobYaml, AliasesRepeatValues) {
  const ParsedJob parsed = ParseJob(
      Text(kEnvelope + std::string("  data: {paths: &p [a.txt], validation: {paths: *p}}\n")));
  EXPECT_THAT(Messages(parsed.problems), IsEmpty());
  EXPECT_THAT(parsed.job.spec.data().validation().paths(), ElementsAre("/jobs/a.txt"));
}

TEST(Overrides, ReplaceWhatTheFileSays) {
  const ParsedJob parsed = ParseJob(Text(
      kEnvelope + std::string(kGood),
      {"training.steps=5", "spec.optimizer.lr=0.5", "data.paths=[c.txt]", "metadata.name=other",
       "metadata.labels.team.sub=x", "training.global_batch_size=auto", "training.steps=7"}));
  EXPECT_THAT(Messages(parsed.problems), IsEmpty());
  EXPECT_EQ(parsed.job.spec.training().steps(), 7);
  EXPECT_EQ(parsed.job.spec.optimizer().lr(), 0.5);
  EXPECT_THAT(parsed.job.spec.data().paths(), ElementsAre("/jobs/c.txt"));
  EXPECT_EQ(parsed.job.metadata.name(), "other");
  EXPECT_EQ(parsed.job.metadata.labels().at("team.sub"), "x");
  EXPECT_FALSE(parsed.job.spec.training().has_global_batch_size());
}

TEST(Overrides, AreReadAsStrictlyAsTheFile) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"training.stepz=20",
       "--set training.stepz=20: training.stepz is not a key; did you mean training.steps?"},
      {"steps=20",
       "--set steps=20: steps is not a key; the keys here are model, data, training, "
       "optimizer, precision, parallelism, communication, memory, resources, elastic, "
       "health, recovery, checkpoint, profile, scheduling"},
      {"seed=20", "--set seed=20: seed is not a key; did you mean training.seed?"},
      {"training.steps=many",
       "--set training.steps=many: training.steps: 'many' is not a whole number (such as 1000, "
       "500k or 1.5B)"},
      {"training.steps=",
       "--set training.steps=: training.steps has no value; give one, write auto, or drop the key"},
      {"training.steps",
       "--set training.steps: an override is KEY=VALUE, such as training.steps=20"},
      {"=5", "--set =5: an override is KEY=VALUE, such as training.steps=20"},
      {"training.steps.x=5",
       "--set training.steps.x=5: training.steps is a whole number and has no keys below it"},
      {"training=", "--set training=: training must be a section but is empty"},
      {"metadata.labels=~",
       "--set metadata.labels=~: metadata.labels must be a section of labels but is empty"},
      {"training=5", "--set training=5: training must be a section but is '5'"},
      {"data.paths=a",
       "--set data.paths=a: data.paths must be a list of text but is 'a'; write [a]"},
      {"data.paths=[a",
       "--set data.paths=[a: data.paths: not YAML: end of sequence flow not found"},
      {"metadata.nme=a",
       "--set metadata.nme=a: metadata.nme is not a key; did you mean metadata.name?"},
      {"..=1",
       "--set ..=1:  is not a key; the keys here are model, data, training, optimizer, "
       "precision, parallelism, communication, memory, resources, elastic, health, "
       "recovery, checkpoint, profile, scheduling"},
  };
  for (const auto& [override, message] : cases) {
    const std::vector<std::string> problems = Problems(kGood, {override});
    ASSERT_EQ(problems.size(), 1u) << override;
    // An override has no lines; a value's own position inside it may be named.
    EXPECT_EQ(problems[0], message);
  }
}

TEST(Print, ParsesBackToTheSameJob) {
  const ParsedJob parsed = ParseJob(Text(
      kEnvelope + std::string(kGood) +
          "  health: {hang: {collective_timeout: 1.5s}}\n  recovery: {ladder: [retry, stop]}\n",
      {"metadata.labels.a=b c", "metadata.labels.true=\"7\"", "data.split='1,1,\"1'",
       "optimizer.eps=1e-30", "optimizer.min_lr=0.1"}));
  ASSERT_THAT(Messages(parsed.problems), IsEmpty());
  for (const v1::JobSpec& spec : {parsed.job.spec, spec::ApplyDefaults(parsed.job.spec)}) {
    const std::string printed = PrintJob(parsed.job.metadata, spec);
    const ParsedJob again = ParseJob(Text(printed));
    EXPECT_THAT(Messages(again.problems), IsEmpty()) << printed;
    EXPECT_EQ(again.job.spec.SerializeAsString(), spec.SerializeAsString()) << printed;
    EXPECT_EQ(again.job.metadata.name(), parsed.job.metadata.name());
    EXPECT_EQ(std::map(again.job.metadata.labels().begin(), again.job.metadata.labels().end()),
              std::map(parsed.job.metadata.labels().begin(), parsed.job.metadata.labels().end()));
  }
}

TEST(Examples, AreValid) {
  int examples = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(MEGA_SOURCE_DIR "/deploy/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    ++examples;
    const absl::StatusOr<JobText> text = ReadJobText(entry.path().string(), {});
    ASSERT_TRUE(text.ok()) << text.status();
    const ParsedJob parsed = ParseAndCheckJob(*text);
    EXPECT_THAT(Messages(parsed.problems), IsEmpty());
    for (const std::string& path : parsed.job.spec.data().paths())
      EXPECT_TRUE(std::filesystem::exists(path)) << path;
  }
  EXPECT_GE(examples, 2);
}

TEST(ReadJobText, NamesWhatItCannotRead) {
  EXPECT_THAT(ReadJobText("/nowhere/job.yaml", {}).status().ToString(),
              ::testing::HasSubstr("/nowhere/job.yaml"));
  EXPECT_THAT(ReadJobText("/", {}).status().ToString(), ::testing::HasSubstr("is a folder"));
}

}  // namespace
}  // namespace mega::cli
