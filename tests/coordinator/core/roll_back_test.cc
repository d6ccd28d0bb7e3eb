// A user takes a job back to an older checkpoint.
#include "coordinator/core/recovery/roll_back.h"

#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/core/cluster.h"

namespace mega::core {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Trained {
  Trained() {
    uid = RunningPair(cluster);
    for (const int64_t step : {10, 20, 30}) {
      cluster.StepDone(uid, step);
      for (const int64_t rank : {0, 1}) cluster.Save(uid, step, rank);
    }
    cluster.StepDone(uid, 35);
  }
  v1::ReplyCall Restart(int64_t from_step, bool from_beginning = false) {
    v1::CoreRequest request;
    request.set_uid(uid);
    request.mutable_restart_job()->set_from_step(from_step);
    request.mutable_restart_job()->set_from_beginning(from_beginning);
    return cluster.Ask(std::move(request));
  }
  void EndAll() {
    for (const int64_t rank : {0, 1}) cluster.Exit(uid, rank, 0, 15, /*by_worker=*/true);
    cluster.Run(absl::Seconds(1));
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> steps;
    for (const v1::Manifest& manifest : cluster.job(uid).checkpoints()) {
      steps.push_back(manifest.step());
    }
    return steps;
  }

  Cluster cluster;
  JobUid uid;
};

TEST(RollBack, TheNextAttemptStartsFromTheStepThatWasAskedFor) {
  Trained job;
  EXPECT_EQ(job.Restart(10).code(), 0);
  EXPECT_THAT(job.steps(), ElementsAre(10));
  EXPECT_EQ(job.cluster.attempt(job.uid).state(), v1::ATTEMPT_STATE_STOPPING);
  job.EndAll();
  const v1::Attempt& attempt = job.cluster.attempt(job.uid);
  ASSERT_EQ(attempt.number(), 2);
  EXPECT_EQ(attempt.start_step(), 10);
  EXPECT_EQ(attempt.rung(), "roll_back");
  EXPECT_EQ(job.cluster.sent["b"].back().start_ranks().load().step(), 10);
  const v1::RecoveryRecord& record = *job.cluster.job(job.uid).recoveries().rbegin();
  EXPECT_EQ(record.from_step(), 10);
  EXPECT_EQ(record.lost_steps(), 25);
  EXPECT_EQ(record.decided_by(), "a user");
  EXPECT_THAT(job.cluster.events(job.uid), Contains("ROLLED_BACK"));
  EXPECT_EQ(job.cluster.job(job.uid).restarts(), 0) << "no failure, and no budget";
  EXPECT_EQ(job.cluster.Count("a", v1::Command::kDeleteCheckpoint), 0) << "the folders stay";
}

TEST(RollBack, WhatItTrainsAgainItSavesAgainAndIsProgress) {
  Trained job;
  job.Restart(10);
  job.EndAll();
  for (int64_t step = 12; step <= 20; step += 4) {  // behind where it once was, and still further
    job.cluster.Ready(job.uid);
    job.cluster.StepDone(job.uid, step);
    job.cluster.Exit(job.uid, 1, 1);
    job.cluster.Exit(job.uid, 0, 0, 15, /*by_worker=*/true);
    job.cluster.Run(absl::Seconds(1));
    EXPECT_EQ(job.cluster.job(job.uid).cycles_without_progress(), 0) << step;
  }
  job.cluster.Ready(job.uid);
  job.cluster.StepDone(job.uid, 20);
  for (const int64_t rank : {0, 1}) job.cluster.Save(job.uid, 20, rank);
  EXPECT_THAT(job.steps(), ElementsAre(10, 20));
  EXPECT_EQ(job.cluster.job(job.uid).checkpoints(1).epoch(), job.cluster.attempt(job.uid).epoch());
}

// A rank that is asked to end saves before it does.
TEST(RollBack, WhatTheEndingAttemptSavesIsNoCheckpoint) {
  Trained job;
  job.cluster.Save(job.uid, 40, 0);
  job.Restart(20);
  job.cluster.Save(job.uid, 40, 1);
  EXPECT_THAT(job.steps(), ElementsAre(10, 20));
  for (const char* node : {"a", "b"}) {
    ASSERT_EQ(job.cluster.Count(node, v1::Command::kCheckpointRejected), 1);
    EXPECT_THAT(job.cluster.sent[node].back().checkpoint_rejected().reason(),
                HasSubstr("older checkpoint"));
  }
  job.cluster.Restart();  // the fence is durable
  for (const int64_t rank : {0, 1}) {
    job.cluster.Hello(rank == 0 ? "a" : "b",
                      {.devices = 1, .running = {job.cluster.ref(job.uid, rank)}});
  }
  for (const int64_t rank : {0, 1}) job.cluster.Save(job.uid, 36, rank);
  EXPECT_THAT(job.steps(), ElementsAre(10, 20));
  job.EndAll();
  EXPECT_EQ(job.cluster.attempt(job.uid).start_step(), 20);
  job.cluster.Ready(job.uid);
  job.cluster.StepDone(job.uid, 21);
  for (const int64_t rank : {0, 1}) job.cluster.Save(job.uid, 30, rank);
  EXPECT_THAT(job.steps(), ElementsAre(10, 20, 30));
}

// Case: the worker told its parts again after a reconnect, heard that the job had gone back, and
// its rank removed its slices of a checkpoint that checkpoint.load of another job may use.
TEST(RollBack, WhatComesLateOfACheckpointDoesNotTouchItsFiles) {
  Trained job;
  job.Restart(20);
  job.cluster.Restart();
  for (const int64_t rank : {0, 1}) {
    job.cluster.Hello(rank == 0 ? "a" : "b",
                      {.devices = 1, .running = {job.cluster.ref(job.uid, rank)}});
  }
  for (const int64_t step : {20, 25, 30}) {
    for (const int64_t rank : {0, 1}) job.cluster.Save(job.uid, step, rank);
    v1::WorkerMessage failed;
    *failed.mutable_checkpoint_failed()->mutable_rank() = job.cluster.ref(job.uid, 1);
    failed.mutable_checkpoint_failed()->set_step(step);
    job.cluster.Say("b", std::move(failed));
  }
  for (const char* node : {"a", "b"}) {
    EXPECT_EQ(job.cluster.Count(node, v1::Command::kCheckpointRejected), 0) << node;
  }
  EXPECT_THAT(job.steps(), ElementsAre(10, 20));
}

// The last step was made while the answer was on its way.
TEST(RollBack, AnAttemptThatEndsWellMeanwhileIsNotTheEndOfTheJob) {
  Trained job;
  job.Restart(20);
  for (const int64_t rank : {0, 1}) job.cluster.Exit(job.uid, rank, 0);
  job.cluster.Run(absl::Seconds(1));
  EXPECT_EQ(job.cluster.job(job.uid).phase(), v1::JOB_PHASE_STARTING);
  EXPECT_EQ(job.cluster.attempt(job.uid).start_step(), 20);
}

TEST(RollBack, FromTheBeginningToo) {
  Trained job;
  EXPECT_EQ(job.Restart(0, /*from_beginning=*/true).code(), 0);
  EXPECT_THAT(job.steps(), IsEmpty());
  job.EndAll();
  EXPECT_EQ(job.cluster.attempt(job.uid).number(), 2);
  EXPECT_FALSE(job.cluster.attempt(job.uid).has_load());
  EXPECT_EQ(job.Restart(10, /*from_beginning=*/true).reason(), "STEP_AMBIGUOUS");
}

TEST(RollBack, AJobThatWaitsForItsBackOffGoesBackToo) {
  Trained job;
  for (int i = 0; i < 3; ++i) {
    job.cluster.Exit(job.uid, 1, 1);
    job.cluster.Exit(job.uid, 0, 0, 15, /*by_worker=*/true);
    job.cluster.Run(absl::Milliseconds(200));
  }
  ASSERT_EQ(job.cluster.job(job.uid).phase(), v1::JOB_PHASE_RECOVERING);
  EXPECT_EQ(job.Restart(10).code(), 0);
  EXPECT_EQ(job.cluster.attempt(job.uid).start_step(), 10);
  EXPECT_EQ(job.cluster.attempt(job.uid).rung(), "roll_back");
}

TEST(RollBack, AStepWithoutACheckpointIsRefusedWithThoseThereAre) {
  Trained job;
  const v1::ReplyCall reply = job.Restart(15);
  EXPECT_EQ(reply.code(), static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_THAT(reply.message(), HasSubstr("those of steps 10, 20 and 30"));
  EXPECT_EQ(job.cluster.attempt(job.uid).state(), v1::ATTEMPT_STATE_RUNNING);
  EXPECT_THAT(job.cluster.events(job.uid), Not(Contains("RESTART_REQUESTED")));
}

// It would be written over.
TEST(RollBack, NotBehindAPinnedCheckpoint) {
  Trained job;
  v1::CoreRequest pin;
  pin.set_uid(job.uid);
  pin.mutable_pin_checkpoint()->set_step(20);
  pin.mutable_pin_checkpoint()->set_pinned(true);
  job.cluster.Ask(pin);
  EXPECT_EQ(job.Restart(10).reason(), "CHECKPOINT_PINNED");
  EXPECT_THAT(job.steps(), ElementsAre(10, 20, 30));
  EXPECT_EQ(job.Restart(20).code(), 0);
  EXPECT_THAT(job.steps(), ElementsAre(10, 20));
}

}  // namespace
}  // namespace mega::core
