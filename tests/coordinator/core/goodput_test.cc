// Where a job's time went: each second has one cause.
#include "coordinator/core/jobs/goodput.h"

#include <functional>
#include <map>
#include <random>
#include <string>

#include "base/clock.h"
#include "coordinator/planner/spec/goodput.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

double Seconds(const v1::Job& job, std::string_view cause) {
  for (const v1::GoodputCause& entry : job.goodput().causes()) {
    if (entry.cause() == cause) return entry.seconds();
  }
  return 0;
}

double DeviceSeconds(const v1::Job& job, std::string_view cause) {
  for (const v1::GoodputCause& entry : job.goodput().causes()) {
    if (entry.cause() == cause) return entry.device_seconds();
  }
  return 0;
}

double Span(const v1::Job& job) {
  return absl::ToDoubleSeconds(FromProto(job.end_time()) - FromProto(job.create_time()));
}

void SaveAll(Cluster& cluster, const JobUid& uid, int64_t step) {
  for (const int64_t rank : {0, 1}) cluster.Save(uid, step, rank);
}

TEST(Goodput, AJobWithoutAFaultWaitsStartsTrainsAndStops) {
  Cluster cluster;
  cluster.Submit("job", 2);
  cluster.Run(absl::Seconds(7));
  cluster.Hello("a");
  cluster.Run(absl::Seconds(3));
  cluster.Ready("job");
  cluster.Run(absl::Seconds(2));
  cluster.StepDone("job", 1);
  cluster.Run(absl::Seconds(40));
  EXPECT_EQ(cluster.job("job").goodput().open_cause(), "training");
  EXPECT_EQ(cluster.job("job").goodput().open_devices(), 2);
  cluster.Cancel("job");
  cluster.Run(absl::Seconds(1));
  for (const int64_t rank : {0, 1}) cluster.Exit("job", rank, 0, 15, true);

  const v1::Job& job = cluster.job("job");
  ASSERT_EQ(job.phase(), v1::JOB_PHASE_CANCELLED);
  EXPECT_NEAR(Seconds(job, "queued"), 7, 1e-6);
  EXPECT_NEAR(Seconds(job, "starting"), 5, 1e-6);
  EXPECT_NEAR(Seconds(job, "training"), 40, 1e-6);
  EXPECT_NEAR(Seconds(job, "stopping"), 1, 1e-6);
  EXPECT_EQ(DeviceSeconds(job, "queued"), 0);
  EXPECT_NEAR(DeviceSeconds(job, "training"), 80, 1e-6);
  EXPECT_FALSE(job.goodput().has_open_time());
  const spec::GoodputSums sums = spec::SumGoodput(job.goodput(), absl::InfiniteFuture());
  EXPECT_NEAR(sums.seconds, Span(job), 1e-6);
  EXPECT_NEAR(sums.device_seconds, 2 * 46, 1e-6);
  EXPECT_NEAR(*sums.Ratio(), 40.0 / 46, 1e-9);
}

TEST(Goodput, StepsMadeAgainAreReworkUntilTheFirstNewOne) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.StepDone(uid, 4);
  SaveAll(cluster, uid, 4);
  cluster.Run(absl::Seconds(10));
  cluster.StepDone(uid, 6);
  cluster.Exit(uid, 0, 1);
  cluster.Exit(uid, 1, 0, 9, true);
  cluster.Run(absl::Seconds(1));
  ASSERT_EQ(cluster.attempt(uid).number(), 2);
  ASSERT_EQ(cluster.attempt(uid).start_step(), 4);
  cluster.Ready(uid);
  EXPECT_EQ(cluster.job(uid).goodput().open_cause(), "restoring");
  cluster.Run(absl::Seconds(3));
  cluster.StepDone(uid, 5);
  EXPECT_EQ(cluster.job(uid).goodput().open_cause(), "rework");
  cluster.Restart();  // of the coordinator: the ledger goes on where it was
  cluster.Hello("a", {.devices = 1, .running = {cluster.ref(uid, 0)}});
  cluster.Hello("b", {.devices = 1, .running = {cluster.ref(uid, 1)}});
  cluster.Run(absl::Seconds(5));
  cluster.StepDone(uid, 6);
  EXPECT_EQ(cluster.job(uid).goodput().open_cause(), "training");
  cluster.Run(absl::Seconds(20));
  cluster.StepDone(uid, 7);
  for (const int64_t rank : {0, 1}) cluster.Exit(uid, rank, 0);

  const v1::Job& job = cluster.job(uid);
  ASSERT_EQ(job.phase(), v1::JOB_PHASE_SUCCEEDED);
  EXPECT_NEAR(Seconds(job, "rework"), 5, 1e-6);
  EXPECT_NEAR(Seconds(job, "restoring"), 3, 1e-6);
  EXPECT_NEAR(Seconds(job, "training"), 30, 1e-6);
  EXPECT_NEAR(spec::SumGoodput(job.goodput(), absl::InfiniteFuture()).seconds, Span(job), 1e-6);
}

TEST(Goodput, AStandstillIsNoTraining) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Run(absl::Seconds(5));
  cluster.StepDone(uid, 2);
  cluster.silent.insert("a");
  cluster.Run(absl::Seconds(8));  // nobody moves, and nobody knows why yet
  cluster.Exit(uid, 1, 1);

  const v1::Job& job = cluster.job(uid);
  EXPECT_EQ(job.goodput().open_cause(), "stopping");
  EXPECT_NEAR(Seconds(job, "training"), 5, 1e-6);
  EXPECT_NEAR(Seconds(job, "recovering"), 8, 1e-6);
  EXPECT_NEAR(DeviceSeconds(job, "recovering"), 16, 1e-6);
}

// Case: the hang verdict counts afresh from its return, and the ledger did so with it.
TEST(Goodput, NorIsOneInWhichANodeWasSilentForAWhile) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  cluster.Run(absl::Seconds(5));
  cluster.StepDone(uid, 2);
  cluster.silent.insert("a");
  cluster.Run(absl::Seconds(8));
  ASSERT_TRUE(cluster.state.live.nodes.at("a").suspect());
  cluster.silent.clear();
  cluster.Run(absl::Seconds(4));
  ASSERT_FALSE(cluster.state.live.nodes.at("a").suspect());
  cluster.Exit(uid, 1, 1);

  const v1::Job& job = cluster.job(uid);
  EXPECT_NEAR(Seconds(job, "training"), 5, 1e-6);
  EXPECT_NEAR(Seconds(job, "recovering"), 12, 1e-6);
}

TEST(Goodput, APausedJobIsPausedAndOneThatGaveWayWaits) {
  Cluster cluster;
  const JobUid uid = RunningPair(cluster);
  v1::CoreRequest pause;
  pause.set_uid(uid);
  pause.mutable_pause_job();
  cluster.Ask(pause);
  EXPECT_EQ(cluster.job(uid).goodput().open_cause(), "saving");
  cluster.StepDone(uid, 2);
  SaveAll(cluster, uid, 2);
  EXPECT_EQ(cluster.job(uid).goodput().open_cause(), "stopping");
  for (const int64_t rank : {0, 1}) cluster.Exit(uid, rank, 0, 15, true);
  EXPECT_EQ(cluster.job(uid).goodput().open_cause(), "paused");
  cluster.CloseSession("a");
  v1::CoreRequest resume;
  resume.set_uid(uid);
  resume.mutable_resume_job();
  cluster.Ask(resume);
  EXPECT_EQ(cluster.job(uid).goodput().open_cause(), "queued");
}

// The coordinator's next change of the job, or one that it would never make.
void ChangeAtRandom(v1::Job& job, const std::function<int64_t(int64_t)>& draw) {
  if (LiveAttempt(job) == nullptr || draw(8) == 0) {
    job.set_phase(draw(4) == 0 ? v1::JOB_PHASE_PAUSED : v1::JOB_PHASE_RECOVERING);
    v1::Attempt& attempt = *job.add_attempts();
    attempt.set_state(v1::ATTEMPT_STATE_STARTING);
    for (int64_t rank = draw(6); rank >= 0; --rank) attempt.add_ranks();
    if (draw(2) == 0) attempt.mutable_load();
    return;
  }
  v1::Attempt& attempt = NewestAttempt(job);
  attempt.set_state(static_cast<v1::AttemptState>(1 + draw(4)));
  attempt.set_yields(draw(4) == 0);
  attempt.set_last_step(draw(100));
  for (v1::RankState& rank : *attempt.mutable_ranks()) rank.set_ready(draw(8) != 0);
}

TEST(Goodput, SumsAreExactForAnyHistory) {
  std::mt19937_64 random(20'261'202);
  const auto draw = [&](int64_t below) { return static_cast<int64_t>(random() % below); };
  for (int history = 0; history < 300; ++history) {
    const bool is_clock_set = history % 2 == 1;  // back, now and then
    const absl::Time begin = absl::FromUnixSeconds(1'700'000'000);
    absl::Time now = begin, newest = begin;
    v1::Job job;
    job.set_phase(v1::JOB_PHASE_QUEUED);
    ChargeTime(job, now);
    std::map<std::string, double> seconds, device_seconds;
    const auto pass = [&](absl::Duration span) {  // spans of whole 1/8 s, so that sums are exact
      now += span;
      newest = std::max(newest, now);
      const v1::Attempt* live = LiveAttempt(job);
      const std::string cause(CauseOfTime(job));
      seconds[cause] += absl::ToDoubleSeconds(span);
      device_seconds[cause] +=
          absl::ToDoubleSeconds(span) * (live == nullptr ? 0 : live->ranks_size());
    };
    for (int change = 0; change < 60; ++change) {
      const bool is_set_back = is_clock_set && draw(10) == 0;
      pass(absl::Milliseconds(125) * (is_set_back ? -draw(80) : draw(800)));
      ChangeAtRandom(job, draw);
      ChargeTime(job, now);
    }
    pass(newest - now + absl::Seconds(1));
    const double span = absl::ToDoubleSeconds(now - begin);
    EXPECT_EQ(spec::SumGoodput(job.goodput(), now).seconds, span) << history;
    job.set_phase(v1::JOB_PHASE_FAILED);
    NewestAttempt(job).set_state(v1::ATTEMPT_STATE_ENDED);
    ChargeTime(job, now);
    ChargeTime(job, now + absl::Hours(1));  // a late report
    EXPECT_EQ(spec::SumGoodput(job.goodput(), absl::InfiniteFuture()).seconds, span) << history;
    EXPECT_LE(job.goodput().causes_size(), 9);
    if (is_clock_set) continue;
    for (const v1::GoodputCause& cause : job.goodput().causes()) {
      EXPECT_EQ(cause.seconds(), seconds[cause.cause()]) << history << " " << cause.cause();
      EXPECT_EQ(cause.device_seconds(), device_seconds[cause.cause()])
          << history << " " << cause.cause();
    }
  }
}

}  // namespace
}  // namespace mega::core
