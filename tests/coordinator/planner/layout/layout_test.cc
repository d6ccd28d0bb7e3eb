#include "coordinator/planner/layout/grammar.h"
#include "coordinator/planner/layout/stages.h"
#include "coordinator/planner/layout/validate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_dir.h"

namespace mega::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Stages, EvenAndInterleavedSplitsEqualMegatronCores) {
  const auto json = nlohmann::json::parse(
      testing::ReadFile(std::string(MEGA_TEST_DATA) + "/parallel/pipeline_layers.json"));
  int compared = 0;
  for (const auto& config : json["configs"]) {
    // Uneven splits are not ours yet.
    if (!config["num_layers_in_first_stage"].is_null() ||
        !config["num_layers_in_last_stage"].is_null() || config["embedding_counts_as_layer"] ||
        config["loss_counts_as_layer"])
      continue;
    const int64_t vpp = config["vpp"].is_null() ? 1 : config["vpp"].get<int64_t>();
    for (const auto& stage : config["stages"]) {
      const LayerRange range =
          LayersOf(config["num_layers"], config["pp"], vpp, stage["pp_rank"], stage["vp_stage"]);
      EXPECT_EQ(range, (LayerRange{stage["first_layer"], stage["num_layers"]})) << stage;
      ++compared;
    }
  }
  EXPECT_GT(compared, 8);
}

TEST(Stages, CoverAllLayersInOrderWhateverTheSizes) {
  for (int64_t layers = 0; layers <= 40; ++layers) {
    for (int64_t stages = 1; stages <= 8; ++stages) {
      for (int64_t chunks = 1; chunks <= 3; ++chunks) {
        int64_t next = 0, fewest = layers, most = 0;
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
          for (int64_t stage = 0; stage < stages; ++stage) {
            const LayerRange range = LayersOf(layers, stages, chunks, stage, chunk);
            ASSERT_EQ(range.first, next);
            next += range.count;
            fewest = std::min(fewest, range.count);
            most = std::max(most, range.count);
          }
        }
        ASSERT_EQ(next, layers);
        ASSERT_LE(most - fewest, 1);
      }
    }
  }
}

TEST(Grammar, CompletesWhatIsUnsaid) {
  const LayoutLine line = *ParseLayout("tp=2,pp=4,ep=6");
  EXPECT_EQ(line.layout.expert_tensor_parallel_size(), 2);
  EXPECT_EQ(line.layout.data_parallel_size(), 6);  // 2·dp is to be a multiple of 2·6
  EXPECT_EQ(line.layout.context_parallel_size(), 1);
  EXPECT_EQ(line.layout.virtual_stages(), 1);
  EXPECT_EQ(line.layout.rank_order(), "tp-cp-ep-dp-pp");
  EXPECT_EQ(line.layout.data_sharding(), "none");
  EXPECT_EQ(line.layout.micro_batch_size(), 0);
  EXPECT_EQ(line.schedule, "1f1b");
}

TEST(Grammar, PrintsTheShortestLineThatReadsBack) {
  const std::pair<const char*, const char*> cases[] = {
      {"dp=1", "dp=1"},
      {"tp=1", "dp=1"},
      {"dp=4,tp=1,mbs=2", "dp=4,mbs=2"},
      {"schedule=1f1b,pp=2,tp=2", "tp=2,pp=2"},
      {"tp=2,etp=1,ep=2", "tp=2,ep=2,etp=1"},
      {"ep=8", "ep=8"},
      {"ep=8,dp=8", "ep=8"},
      {"ep=8,dp=16", "ep=8,dp=16"},
      {"tp=4,sp=1,cp=2,cp_kind=ulysses,sharding=full,recompute=selective,order=tp-cp-ep-pp-dp,"
       "vpp=2,schedule=interleaved",
       "tp=4,cp=2,vpp=2,sp=1,schedule=interleaved,cp_kind=ulysses,sharding=full,"
       "recompute=selective,order=tp-cp-ep-pp-dp"}};
  for (const auto& [line, printed] : cases) {
    const LayoutLine parsed = *ParseLayout(line);
    EXPECT_EQ(PrintLayout(parsed), printed);
    const LayoutLine again = *ParseLayout(printed);
    EXPECT_EQ(again.layout.SerializeAsString(), parsed.layout.SerializeAsString()) << line;
    EXPECT_EQ(again.schedule, parsed.schedule);
  }
}

TEST(Grammar, IsStrict) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "'' is no name=value"},
      {"tp=2,", "'' is no name=value"},
      {"tp", "'tp' is no name=value"},
      {"xp=2", "'xp' is unknown; names are tp, cp, ep, etp, dp, pp, vpp, sp, schedule"},
      {"tp=2,tp=2", "tp is given twice"},
      {"tp=0", "tp is '0'; choose a number from 1"},
      {"tp=-1", "tp is '-1'"},
      {"tp=+1", "tp is '+1'"},
      {"tp= 1", "tp is ' 1'"},
      {"tp=2.0", "tp is '2.0'"},
      {"tp=99999999999999999999", "choose a number from 1 to 1048576"},
      {"sp=2", "sp is '2'; choose a number from 0 to 1"},
      {"schedule=pipedream", "schedule is 'pipedream'; choose one of 1f1b"},
      {"order=pp-tp", "order is 'pp-tp'"},
      {std::string(600, 'a'), "600 bytes"}};
  for (const auto& [line, message] : cases)
    EXPECT_THAT(std::string(ParseLayout(line).status().message()), HasSubstr(message)) << line;
}

ModelSpec Model() {
  ModelSpec model;
  model.num_layers = 12;
  model.hidden_size = 128;
  model.num_attention_heads = 32;
  model.num_query_groups = 4;
  model.head_dim = 4;
  model.ffn_hidden_size = 96;
  model.vocab_size = 256;
  return model;
}

std::vector<std::string> Violations(const std::string& line, int64_t seq_length = 128) {
  return LayoutViolations(Model(), ParseLayout(line)->layout, seq_length);
}

TEST(LayoutViolations, NamesBothSizesAndTheWayOut) {
  EXPECT_THAT(Violations("tp=2,pp=3,vpp=2,cp=4,sp=1"), IsEmpty());
  EXPECT_THAT(Violations("tp=8"), IsEmpty());  // two ranks share a query group
  EXPECT_THAT(Violations("tp=6"),
              ElementsAre("parallelism.tensor_parallel_size is 6 but model.num_attention_heads is "
                          "32; choose 1, 2, 4, 8, 16 or 32",
                          HasSubstr("model.num_query_groups is 4")));
  EXPECT_THAT(Violations("pp=5"), ElementsAre(HasSubstr("5 × 1 but model.num_layers is 12")));
  EXPECT_THAT(Violations("pp=4,vpp=2"), ElementsAre(HasSubstr("4 × 2")));
  EXPECT_THAT(Violations("cp=2", 126), ElementsAre(HasSubstr("2 × 2 must divide it")));
  EXPECT_THAT(Violations("cp=2", 129), ElementsAre(HasSubstr("data.seq_length is 129")));
  EXPECT_THAT(Violations("sp=1"), ElementsAre(HasSubstr("choose false, or at least 2")));
  EXPECT_THAT(Violations("sp=1,tp=4", 126), ElementsAre(HasSubstr("choose a divisor")));
}

}  // namespace
}  // namespace mega::planner
