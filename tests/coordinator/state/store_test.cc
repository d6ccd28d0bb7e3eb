// Every store: what was committed is what is loaded.
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "coordinator/core/step.h"
#include "coordinator/state/memory_store.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"
#include "tests/coordinator/state/stores.h"

namespace mega::state {
namespace {

std::vector<v1::Mutation> Everything() {
  std::vector<v1::Mutation> mutations(10);
  mutations[0].mutable_put_meta()->set_next_epoch(7);
  v1::Job& job = *mutations[1].mutable_put_job();
  job.set_uid("uid");
  job.set_request_id("request");
  job.mutable_metadata()->set_name("name");
  job.set_phase(v1::JOB_PHASE_QUEUED);
  mutations[2].mutable_put_node()->set_name(std::string("nasty\0name", 10));
  mutations[3].mutable_put_node()->set_name("n");
  mutations[4].mutable_put_event()->set_job_uid("uid");
  mutations[4].mutable_put_event()->set_revision(300);
  mutations[5].mutable_put_event()->set_job_uid("uid");
  mutations[5].mutable_put_event()->set_revision(70'000);
  mutations[6].mutable_put_command()->set_node("n");
  mutations[6].mutable_put_command()->mutable_command()->set_seq(1);
  mutations[7].mutable_put_command()->set_node("n");
  mutations[7].mutable_put_command()->mutable_command()->set_seq(256);
  mutations[8].mutable_put_namespace()->set_name("research");
  mutations[8].mutable_put_namespace()->set_max_devices(8);
  mutations[9].mutable_put_namespace()->set_name("gone");
  return mutations;
}

std::string Text(const core::State& state) { return core::ToSnapshot(state).DebugString(); }

v1::StepReport Report(const std::string& uid, int64_t step, double loss) {
  v1::StepReport report;
  report.set_job_uid(uid);
  report.set_step(step);
  report.set_loss(loss);
  return report;
}

class Store : public ::testing::TestWithParam<StoreKind> {};

TEST_P(Store, LoadsWhatWasCommitted) {
  StoreFactory stores(GetParam());
  core::State expected;
  {
    auto store = stores.Open();
    ASSERT_TRUE(store->Commit(Everything()).ok());
    expected = *store->Load();
  }
  const core::State loaded = *stores.Open()->Load();
  EXPECT_EQ(Text(loaded), Text(expected));
  EXPECT_TRUE(loaded.index == expected.index);
  EXPECT_EQ(loaded.index.request_ids.at("request"), "uid");
  EXPECT_EQ(loaded.durable.nodes.size(), 2u);
  EXPECT_EQ(loaded.durable.commands.size(), 2u);
}

TEST_P(Store, ForgetsWhatWasDeleted) {
  StoreFactory stores(GetParam());
  auto store = stores.Open();
  ASSERT_TRUE(store->Commit(Everything()).ok());
  std::vector<v1::Mutation> deletions(4);
  deletions[0].set_delete_node("n");
  deletions[1].mutable_delete_command()->set_node("n");
  deletions[1].mutable_delete_command()->set_seq(1);
  deletions[2].mutable_delete_event()->set_job_uid("uid");
  deletions[2].mutable_delete_event()->set_revision(300);
  deletions[3].set_delete_namespace("gone");
  ASSERT_TRUE(store->Commit(deletions).ok());
  const core::State loaded = *store->Load();
  EXPECT_FALSE(loaded.durable.nodes.contains("n"));
  EXPECT_FALSE(loaded.durable.namespaces.contains("gone"));
  EXPECT_EQ(loaded.durable.namespaces.at("research").max_devices(), 8);
  EXPECT_EQ(loaded.durable.commands.begin()->first.second, 256);
  EXPECT_EQ(loaded.durable.events.at("uid").begin()->first, 70'000);
}

TEST_P(Store, ForgetsAJobWithItsEventsAndStepsAndNoOther) {
  StoreFactory stores(GetParam());
  auto store = stores.Open();
  std::vector<v1::Mutation> mutations = Everything();
  mutations.emplace_back().mutable_put_job()->set_uid("uid2");
  mutations.emplace_back().mutable_put_event()->set_job_uid("uid2");
  ASSERT_TRUE(store->Commit(mutations).ok());
  const std::vector<v1::StepReport> steps = {Report("uid", 1, 1), Report("uid", 70'000, 1),
                                             Report("uid2", 1, 1)};
  ASSERT_TRUE(store->AppendSteps(steps).ok());
  std::vector<v1::Mutation> deletion(1);
  deletion[0].set_delete_job("uid");
  ASSERT_TRUE(store->Commit(deletion).ok());

  store.reset();
  store = stores.Open();
  const core::State loaded = *store->Load();
  EXPECT_FALSE(loaded.durable.jobs.contains("uid"));
  EXPECT_FALSE(loaded.durable.events.contains("uid"));
  EXPECT_TRUE(loaded.index.request_ids.empty());
  EXPECT_TRUE(store->ReadSteps("uid", 0, 10)->empty());
  EXPECT_TRUE(loaded.durable.jobs.contains("uid2"));
  EXPECT_TRUE(loaded.durable.events.contains("uid2"));
  EXPECT_EQ(store->ReadSteps("uid2", 0, 10)->size(), 1u);
}

TEST_P(Store, StepsComeInOrderOnceAndOfTheirJobOnly) {
  StoreFactory stores(GetParam());
  auto store = stores.Open();
  std::vector<v1::StepReport> reports;
  for (const int64_t step : {300, 2, 1, 256}) reports.push_back(Report("uid", step, 1));
  reports.push_back(Report("ui", 3, 1));
  reports.push_back(Report("uid2", 3, 1));
  ASSERT_TRUE(store->AppendSteps(reports).ok());
  const std::vector<v1::StepReport> again = {Report("uid", 256, 0.5)};  // after a recovery
  ASSERT_TRUE(store->AppendSteps(again).ok());

  const auto found = store->ReadSteps("uid", 2, 10);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 3u);
  EXPECT_EQ((*found)[0].step(), 2);
  EXPECT_EQ((*found)[1].step(), 256);
  EXPECT_EQ((*found)[1].loss(), 0.5);
  EXPECT_EQ((*found)[2].step(), 300);
  EXPECT_EQ(store->ReadSteps("uid", -5, 1)->at(0).step(), 1);
  EXPECT_TRUE(store->ReadSteps("nobody", 0, 10)->empty());
}

TEST_P(Store, KnowsTheNewestStepOfAnEpoch) {
  StoreFactory stores(GetParam());
  auto store = stores.Open();
  std::vector<v1::StepReport> reports;
  for (const int64_t step : {1, 2, 3, 300}) reports.push_back(Report("uid", step, 1));
  reports.push_back(Report("uid2", 400, 1));
  for (v1::StepReport& report : reports) report.set_epoch(report.step() <= 2 ? 8 : 7);
  ASSERT_TRUE(store->AppendSteps(reports).ok());
  const auto newest = [&](int64_t epoch, int64_t after_step) {
    const auto found = store->NewestStep("uid", epoch, after_step);
    return found.ok() && found->has_value() ? (*found)->step() : 0;
  };
  EXPECT_EQ(newest(7, 0), 300);
  EXPECT_EQ(newest(8, 0), 2) << "3 and 300 are of the attempt before, and made again";
  EXPECT_EQ(newest(8, 2), 0);
  EXPECT_EQ(newest(9, 0), 0);
}

// What a rank or its disk said is cut to a bound; a record cut inside a character could not be read
// at the next start.
TEST_P(Store, ReloadsWordsFromOutsideThatWereCut) {
  core::Cluster cluster;
  const core::JobUid uid = core::RunningPair(cluster);
  std::string words = "a";  // the bounds are even: they fall inside an umlaut
  for (int i = 0; i < 100'000; ++i) words += "ä";
  v1::WorkerMessage failed;
  *failed.mutable_checkpoint_failed()->mutable_rank() = cluster.ref(uid, 0);
  failed.mutable_checkpoint_failed()->set_message(words);
  cluster.Say("a", failed);
  v1::WorkerMessage exited;
  *exited.mutable_rank_exited()->mutable_rank() = cluster.ref(uid, 0);
  exited.mutable_rank_exited()->mutable_exit()->set_code(1);
  exited.mutable_rank_exited()->mutable_exit()->set_message(words);
  exited.mutable_rank_exited()->mutable_exit()->set_stderr_tail(words);
  cluster.Say("a", exited);

  std::vector<v1::Mutation> mutations(1);
  *mutations[0].mutable_put_job() = cluster.job(uid);
  for (const auto& [revision, event] : cluster.state.durable.events.at(uid)) {
    *mutations.emplace_back().mutable_put_event() = event;
  }
  StoreFactory stores(GetParam());
  ASSERT_TRUE(stores.Open()->Commit(mutations).ok());
  const auto loaded = stores.Open()->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  const v1::ExitStatus& exit = loaded->durable.jobs.at(uid).attempts(0).ranks(0).exit();
  EXPECT_EQ(exit.message().size(), 4095u);
  EXPECT_EQ(exit.stderr_tail().size(), 65'536u);
}

TEST_P(Store, CarriesACoreOverARestart) {
  StoreFactory stores(GetParam());
  auto store = stores.Open();
  core::State state = *store->Load();
  v1::CoreEvent event;
  event.mutable_started();
  ASSERT_TRUE(store->Commit(core::Step(state, event).mutations).ok());
  event.mutable_submit()->set_uid("uid");
  event.mutable_submit()->set_request_id("request");
  event.mutable_submit()->mutable_metadata()->set_name("name");
  ASSERT_TRUE(store->Commit(core::Step(state, event).mutations).ok());

  store.reset();
  core::State loaded = *stores.Open()->Load();
  EXPECT_EQ(loaded.durable.jobs.at("uid").SerializeAsString(),
            state.durable.jobs.at("uid").SerializeAsString());
  EXPECT_TRUE(loaded.index == state.index);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Store, ::testing::ValuesIn(AllStores()),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace mega::state
