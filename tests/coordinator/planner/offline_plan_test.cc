#include "coordinator/planner/offline_plan.h"

#include "coordinator/planner/spec/spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/planner/small_job.h"

namespace mega::planner {
namespace {

using ::testing::HasSubstr;

v1::JobSpec Job() { return spec::ApplyDefaults(mega::testing::SmallJob()); }

TEST(OfflinePlan, TheClusterIsAsLargeAsTheJobAsks) {
  EXPECT_EQ(MakeOfflinePlan(Job())->world_size(), 1);
  v1::JobSpec job = Job();
  job.mutable_resources()->mutable_nodes()->set_desired(3);
  EXPECT_EQ(MakeOfflinePlan(job)->world_size(), 3);
  job.mutable_resources()->set_devices_per_node(2);
  EXPECT_EQ(MakeOfflinePlan(job)->world_size(), 6);
  job.mutable_parallelism()->set_data_parallel_size(5);
  EXPECT_EQ(MakeOfflinePlan(job)->ranks(4).node(), "node-3");
  job.mutable_resources()->clear_devices_per_node();
  EXPECT_EQ(MakeOfflinePlan(job)->ranks(4).node(), "node-3");
}

TEST(OfflinePlan, SizesThatAreGivenStandForTheJobs) {
  v1::JobSpec job = Job();
  EXPECT_EQ(MakeOfflinePlan(job, {.devices = 4, .cores = 9})->world_size(), 4);
  EXPECT_EQ(MakeOfflinePlan(job, {.devices = 4, .cores = 9})->threads_per_device(), 2);
  job.mutable_parallelism()->set_data_parallel_size(5);
  EXPECT_EQ(MakeOfflinePlan(job, {.devices = 4}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// Devices cost memory one by one.
TEST(OfflinePlan, NoClusterIsLargerThanAnyJobMayBe) {
  v1::JobSpec job = Job();
  EXPECT_TRUE(MakeOfflinePlan(job, {.nodes = 1, .devices = 65'536}).ok());
  const auto large = MakeOfflinePlan(job, {.nodes = 100'000, .devices = 4096});
  EXPECT_EQ(large.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(large.status().message(), HasSubstr("a job has at most 65536"));
  // A small job that could lie anywhere on very many devices.
  job.mutable_parallelism()->set_data_parallel_size(2);
  job.mutable_resources()->mutable_nodes()->set_desired(1'048'576);
  job.mutable_resources()->set_devices_per_node(4096);
  EXPECT_EQ(MakeOfflinePlan(job)->world_size(), 2);
}

}  // namespace
}  // namespace mega::planner
