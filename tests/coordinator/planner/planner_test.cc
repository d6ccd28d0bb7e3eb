#include "coordinator/planner/planner.h"

#include <set>

#include "coordinator/planner/spec/spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/planner/small_job.h"

namespace mega::planner {
namespace {

using mega::testing::SmallJob;
using ::testing::Contains;
using ::testing::HasSubstr;

v1::Node MakeNode(const std::string& name, int64_t free, int64_t busy = 0) {
  v1::Node node;
  node.set_name("nodes/" + name);
  node.set_devices_in_use(busy);
  node.add_numeric_libraries("dnnl 2.6.3");
  for (int64_t i = 0; i < free; ++i) {
    v1::Device& device = *node.add_devices();
    device.set_index(busy + i);
    device.set_kind("cpu");
    device.set_threads(2);
    device.set_memory_bytes(int64_t{1} << 34);
  }
  return node;
}

absl::StatusOr<v1::Plan> Plan(const v1::JobSpec& spec, std::vector<v1::Node> nodes) {
  const v1::JobSpec resolved = spec::ApplyDefaults(spec);
  EXPECT_TRUE(spec::ToStatus(spec::Validate(
                                 [] {
                                   v1::JobMetadata metadata;
                                   metadata.set_name("job");
                                   return metadata;
                                 }(),
                                 resolved))
                  .ok());
  return MakePlan(resolved, {.nodes = std::move(nodes), .revision = 7});
}

std::vector<std::string> NodesOf(const v1::Plan& plan) {
  std::vector<std::string> nodes;
  for (const v1::RankPlacement& rank : plan.ranks())
    nodes.push_back(rank.node() + ":" + std::to_string(rank.device()));
  return nodes;
}

TEST(Planner, UsesEveryDeviceOfOneNodeWhenNothingIsSaid) {
  const v1::Plan plan = *Plan(SmallJob(), {MakeNode("a", 2), MakeNode("b", 3)});
  EXPECT_EQ(plan.world_size(), 3);
  EXPECT_EQ(plan.layout().data_parallel_size(), 3);
  EXPECT_THAT(NodesOf(plan), ::testing::ElementsAre("nodes/b:0", "nodes/b:1", "nodes/b:2"));
  EXPECT_EQ(plan.layout().micro_batch_size(), 4);
  EXPECT_EQ(plan.micro_batches(), 1);
  EXPECT_EQ(plan.steps(), 10);
  EXPECT_EQ(plan.threads_per_device(), 2);
  EXPECT_EQ(plan.revision(), 7);
  EXPECT_EQ(plan.schedule().kind(), "1f1b");
  EXPECT_THAT(plan.numeric_libraries(), ::testing::ElementsAre("dnnl 2.6.3"));
  EXPECT_DOUBLE_EQ(plan.stage_flops_per_token(0), plan.flops_per_token());
}

TEST(Planner, AsksForBusyDevicesTooAndWaits) {
  const auto plan = Plan(SmallJob(), {MakeNode("a", 1, 3)});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("needs 4 devices on at most 1 node, but nodes/a has 1 free and 3 busy; it "
                        "waits until devices are free"));
}

TEST(Planner, TakesTheSmallestNodeThatSuffices) {
  v1::JobSpec job = SmallJob();
  job.mutable_parallelism()->set_data_parallel_size(2);
  const v1::Plan plan = *Plan(job, {MakeNode("a", 4), MakeNode("c", 2), MakeNode("b", 2)});
  EXPECT_THAT(NodesOf(plan), ::testing::ElementsAre("nodes/b:0", "nodes/b:1"));
}

TEST(Planner, SpreadsOverTheFewestNodesRanksContiguous) {
  v1::JobSpec job = SmallJob();
  job.mutable_parallelism()->set_data_parallel_size(5);
  job.mutable_resources()->mutable_nodes()->set_desired(4);
  const v1::Plan plan =
      *Plan(job, {MakeNode("d", 1), MakeNode("c", 2), MakeNode("b", 1), MakeNode("a", 3)});
  EXPECT_THAT(NodesOf(plan), ::testing::ElementsAre("nodes/a:0", "nodes/a:1", "nodes/a:2",
                                                    "nodes/c:0", "nodes/c:1"));
}

TEST(Planner, DevicesPerNodeBoundsEachNode) {
  v1::JobSpec job = SmallJob();
  job.mutable_resources()->mutable_nodes()->set_desired(2);
  job.mutable_resources()->set_devices_per_node(1);
  const v1::Plan plan = *Plan(job, {MakeNode("a", 4), MakeNode("b", 2)});
  EXPECT_THAT(NodesOf(plan), ::testing::ElementsAre("nodes/a:0", "nodes/b:0"));
}

TEST(Planner, IsAllOrNone) {
  v1::JobSpec job = SmallJob();
  job.mutable_parallelism()->set_data_parallel_size(5);
  job.mutable_resources()->mutable_nodes()->set_desired(2);
  const auto plan = Plan(job, {MakeNode("a", 2), MakeNode("b", 2), MakeNode("c", 2)});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("raise resources.nodes.desired"));
  EXPECT_THAT(std::string(Plan(job, {}).status().message()), HasSubstr("no node is ready"));
}

TEST(Planner, TheSamePlanWhateverTheOrderOfNodes) {
  v1::JobSpec job = SmallJob();
  job.mutable_parallelism()->set_data_parallel_size(4);
  job.mutable_resources()->mutable_nodes()->set_desired(3);
  std::vector<v1::Node> nodes = {MakeNode("a", 2), MakeNode("b", 2), MakeNode("c", 2),
                                 MakeNode("d", 1)};
  std::set<std::string> plans;
  do {
    plans.insert(Plan(job, nodes)->SerializeAsString());
  } while (std::next_permutation(nodes.begin(), nodes.end(),
                                 [](const auto& x, const auto& y) { return x.name() < y.name(); }));
  EXPECT_EQ(plans.size(), 1u);
}

TEST(Planner, KeepsNumericLibrariesEqual) {
  v1::JobSpec job = SmallJob();
  job.mutable_parallelism()->set_data_parallel_size(2);
  job.mutable_resources()->mutable_nodes()->set_desired(2);
  v1::Node other = MakeNode("a", 1);
  other.set_numeric_libraries(0, "dnnl 3.2.0");
  EXPECT_THAT(NodesOf(*Plan(job, {other, MakeNode("b", 1), MakeNode("c", 1)})),
              ::testing::ElementsAre("nodes/b:0", "nodes/c:0"));
  const auto mixed = Plan(job, {other, MakeNode("b", 1)});
  EXPECT_EQ(mixed.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(mixed.status().message()),
              HasSubstr("nodes/a: dnnl 3.2.0; nodes/b: dnnl 2.6.3"));
}

TEST(Planner, GbsNeedNotDivide) {
  v1::JobSpec job = SmallJob();
  job.mutable_parallelism()->set_data_parallel_size(5);
  const v1::Plan plan = *Plan(job, {MakeNode("a", 5)});
  EXPECT_EQ(plan.layout().micro_batch_size(), 3);
  EXPECT_EQ(plan.micro_batches(), 1);
  EXPECT_THAT(plan.reasons(), Contains(HasSubstr("3 of 15 rows of a step are masked")));
}

TEST(Planner, SaysWhenReplicasHoldNoSample) {
  v1::JobSpec job = SmallJob();
  job.mutable_training()->set_global_batch_size(2);
  EXPECT_EQ(Plan(job, {MakeNode("a", 4)})->world_size(), 2);
  job.mutable_parallelism()->set_data_parallel_size(4);
  const v1::Plan plan = *Plan(job, {MakeNode("a", 4)});
  EXPECT_EQ(plan.world_size(), 4);
  EXPECT_THAT(plan.reasons(), Contains(HasSubstr("2 of the 4 replicas hold no sample")));
}

TEST(Planner, ChoosesEqualMicroBatchesUnderTheTokenBound) {
  v1::JobSpec job = SmallJob();
  job.mutable_data()->set_seq_length(1024);  // 4 rows a micro-batch
  job.mutable_training()->set_global_batch_size(9);
  const v1::Plan plan = *Plan(job, {MakeNode("a", 1)});
  EXPECT_EQ(plan.layout().micro_batch_size(), 3);
  EXPECT_EQ(plan.micro_batches(), 3);
  job.mutable_data()->set_seq_length(100000);
  EXPECT_EQ(Plan(job, {MakeNode("a", 1)})->layout().micro_batch_size(), 1);
}

TEST(Planner, LowersTheMicroBatchUntilItFits) {
  v1::JobSpec job = SmallJob();
  job.mutable_training()->set_global_batch_size(128);
  v1::Node node = MakeNode("a", 1);
  const v1::Plan roomy = *Plan(job, {node});
  EXPECT_EQ(roomy.layout().micro_batch_size(), 128);
  node.mutable_devices(0)->set_memory_bytes(6 << 20);
  const v1::Plan tight = *Plan(job, {node});
  EXPECT_LT(tight.layout().micro_batch_size(), 128);
  EXPECT_THAT(tight.reasons(), Contains(HasSubstr("lowered from 128 to fit 6.0 MiB")));
  node.mutable_devices(0)->set_memory_bytes(1 << 20);
  EXPECT_THAT(std::string(Plan(job, {node}).status().message()),
              HasSubstr("but the largest has 1.0 MiB"));
}

TEST(Planner, StepsFollowFromTokens) {
  v1::JobSpec job = SmallJob();
  job.mutable_training()->clear_steps();
  job.mutable_training()->set_tokens(12 * 32 * 5 - 1);
  EXPECT_EQ(Plan(job, {MakeNode("a", 1)})->steps(), 5);
}

// Case: 12 samples in micro-batches of 4 on 8 devices: five replicas trained on nothing.
TEST(Planner, ChoosesNoMoreReplicasThanMicroBatchesInAStep) {
  v1::JobSpec spec = SmallJob();
  spec.mutable_training()->set_micro_batch_size(4);
  const v1::Plan plan = *Plan(spec, {MakeNode("a", 8)});
  EXPECT_EQ(plan.layout().data_parallel_size(), 3);
  EXPECT_EQ(plan.micro_batches(), 1);
}

TEST(Planner, BudgetsMemoryByPurpose) {
  const v1::Plan plan = *Plan(SmallJob(), {MakeNode("a", 2)});
  EXPECT_EQ(plan.memory().weights_bytes(), 4 * (plan.parameters() + 32 * 16));  // angles of 32
  EXPECT_EQ(plan.memory().grads_bytes(), 4 * plan.parameters());
  EXPECT_EQ(plan.memory().optimizer_bytes(), 8 * plan.parameters());
  EXPECT_GT(plan.memory().activations_bytes(), 0);
  EXPECT_EQ(plan.memory().comm_bytes(), plan.parameters() / 2);  // one of 8 buckets, 4 bytes each
}

}  // namespace
}  // namespace mega::planner
