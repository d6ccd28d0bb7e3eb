#include "coordinator/service/exporter.h"

#include <cstdlib>
#include <fstream>

#include "base/tls/expiry_notice.h"
#include "gmock/gmock.h"
#include "prometheus/text_serializer.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ManualClock : public Clock {
 public:
  absl::Time WallNow() const override { return now; }
  absl::Duration BootNow() const override { return now - absl::UnixEpoch(); }
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
};

class ExporterTest : public ::testing::Test {
 protected:
  void Put(const std::string& uid, const std::string& name, v1::JobPhase phase) {
    auto job = std::make_shared<v1::Job>();
    job->set_uid(uid);
    job->mutable_metadata()->set_name(name);
    job->mutable_metadata()->set_namespace_("default");
    job->set_phase(phase);
    job->set_restarts(2);
    *job->mutable_create_time() = ToProto(clock_.now - absl::Seconds(30));
    *job->mutable_start_time() = ToProto(clock_.now - absl::Seconds(28));
    if (core::IsTerminal(phase)) *job->mutable_end_time() = ToProto(clock_.now);
    v1::Manifest& manifest = *job->add_checkpoints();
    manifest.set_step(10);
    manifest.set_total_bytes(4096);
    *manifest.mutable_create_time() = ToProto(clock_.now - absl::Seconds(7));
    Publication publication;
    publication.jobs.push_back(job);
    reads_.Publish(publication);
  }
  void Step(const std::string& uid, int64_t attempt, int64_t step) {
    v1::StepReport report;
    report.set_job_uid(uid);
    report.set_attempt(attempt);
    report.set_step(step);
    report.set_loss(2.5);
    report.set_consumed_tokens(step * 100);
    report.set_validation_loss(2.75);
    exporter_.AddStep(report);
  }
  std::string Scrape() {
    exporter_.Refresh();
    return prometheus::TextSerializer().Serialize(exporter_.Collect());
  }

  ManualClock clock_;
  ReadModel reads_;
  Exporter exporter_{
      reads_, clock_, {.sessions = [] { return 3; }, .dropped_reports = [] { return 0; }}};
};

TEST_F(ExporterTest, ShowsAJobInItsPhaseWithItsNewestStep) {
  Put("u1", "demo", v1::JOB_PHASE_RUNNING);
  Step("u1", 1, 1);
  Step("u1", 1, 2);
  const std::string text = Scrape();
  EXPECT_THAT(text, HasSubstr("mega_job_phase{training_job=\"demo\",phase=\"running\"} 1"));
  EXPECT_THAT(text, HasSubstr("mega_job_phase{training_job=\"demo\",phase=\"failed\"} 0"));
  EXPECT_THAT(text, HasSubstr("mega_job_step{training_job=\"demo\"} 2"));
  EXPECT_THAT(text, HasSubstr("mega_loss{training_job=\"demo\"} 2.5"));
  EXPECT_THAT(text, HasSubstr("mega_validation_loss{training_job=\"demo\"} 2.75"));
  EXPECT_THAT(text, HasSubstr("mega_tokens_total{training_job=\"demo\"} 200"));
  EXPECT_THAT(text, HasSubstr("mega_submit_to_first_step_seconds{training_job=\"demo\"} 2"));
  EXPECT_THAT(text, HasSubstr("mega_checkpoint_age_seconds{training_job=\"demo\"} 7"));
  EXPECT_THAT(text, HasSubstr("mega_checkpoint_bytes_total{training_job=\"demo\"} 4096"));
  EXPECT_THAT(text, HasSubstr("mega_worker_sessions 3"));
}

// Case: every save of a job was rejected, and no series told.
TEST_F(ExporterTest, SavesThatFailAreCountedAndAgeIsToldWithoutAnyCheckpoint) {
  v1::Job job;
  job.set_uid("u1");
  job.mutable_metadata()->set_name("unsaved");
  job.mutable_metadata()->set_namespace_("default");
  job.set_phase(v1::JOB_PHASE_RUNNING);
  *job.mutable_create_time() = ToProto(clock_.now);
  *job.mutable_start_time() = ToProto(clock_.now);
  Publication publication;
  publication.jobs.push_back(std::make_shared<v1::Job>(job));
  reads_.Publish(publication);
  EXPECT_THAT(Scrape(), HasSubstr("mega_checkpoint_failures_total{training_job=\"unsaved\"} 0"));
  for (const char* reason : {"CHECKPOINT_REJECTED", "CHECKPOINT_COMMITTED", "CHECKPOINT_FAILED"}) {
    v1::JobEvent event;
    event.set_job_uid("u1");
    event.set_reason(reason);
    exporter_.AddEvent(event);
  }
  clock_.now += absl::Seconds(30);
  const std::string text = Scrape();
  EXPECT_THAT(text, HasSubstr("mega_checkpoint_failures_total{training_job=\"unsaved\"} 2"));
  EXPECT_THAT(text, HasSubstr("mega_checkpoint_age_seconds{training_job=\"unsaved\"} 30"));
}

TEST_F(ExporterTest, TokensCountStepsDoneAgainAndIgnoreReportsSentAgain) {
  Put("u1", "demo", v1::JOB_PHASE_RUNNING);
  for (int64_t step = 1; step <= 4; ++step) Step("u1", 1, step);
  Step("u1", 1, 3);
  Step("u1", 2, 3);  // the second attempt goes on from step 2
  Step("u1", 2, 4);
  EXPECT_THAT(Scrape(), HasSubstr("mega_tokens_total{training_job=\"demo\"} 600"));
}

TEST_F(ExporterTest, SeriesOfAnEndedJobGoAfterAMinute) {
  Put("u1", "demo", v1::JOB_PHASE_SUCCEEDED);
  EXPECT_THAT(Scrape(), HasSubstr("training_job=\"demo\""));
  clock_.now += absl::Minutes(2);
  EXPECT_THAT(Scrape(), Not(HasSubstr("training_job")));
}

TEST_F(ExporterTest, TwoJobsOfOneNameGiveOneSetOfSeries) {
  Put("u1", "demo", v1::JOB_PHASE_FAILED);
  clock_.now += absl::Seconds(1);
  Put("u2", "demo", v1::JOB_PHASE_RUNNING);
  const std::string text = Scrape();
  EXPECT_THAT(text, HasSubstr("phase=\"running\"} 1"));
  EXPECT_THAT(text, HasSubstr("phase=\"failed\"} 0"));
  EXPECT_THAT(text, Not(HasSubstr("phase=\"failed\"} 1")));
}

// Case: jobs that were preempted, resumed or had failed waited unseen, as recovering ones.
TEST_F(ExporterTest, QueueDepthCountsAllThatWait) {
  Put("u1", "new", v1::JOB_PHASE_QUEUED);
  Put("u2", "preempted", v1::JOB_PHASE_RECOVERING);
  Put("u3", "paused", v1::JOB_PHASE_PAUSED);
  Put("u4", "ended", v1::JOB_PHASE_SUCCEEDED);
  EXPECT_THAT(Scrape(), HasSubstr("mega_queue_depth 2"));
}

TEST_F(ExporterTest, SaysWhenTheCertificateExpiresIfThereIsOne) {
  EXPECT_THAT(Scrape(), Not(HasSubstr(tls::kExpirySeries)));
  const Exporter exporter(reads_, clock_,
                          {.sessions = [] { return 0; },
                           .dropped_reports = [] { return 0; },
                           .certificate_expiry = absl::FromUnixSeconds(86400)});
  EXPECT_THAT(prometheus::TextSerializer().Serialize(exporter.Collect()),
              HasSubstr(std::string(tls::kExpirySeries) + " 86400"));
}

TEST_F(ExporterTest, ScrapeServesTheSnapshotAndComputesNothing) {
  exporter_.Refresh();
  Put("u1", "demo", v1::JOB_PHASE_RUNNING);
  EXPECT_THAT(prometheus::TextSerializer().Serialize(exporter_.Collect()),
              Not(HasSubstr("training_job")));
}

TEST_F(ExporterTest, PromtoolAcceptsEverySeries) {
  if (std::system("promtool --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no promtool";
  Put("u1", "demo", v1::JOB_PHASE_RUNNING);
  Step("u1", 1, 1);
  exporter_.AddCommit(0.002);
  exporter_.AddLag(0.0001);
  TempDir dir;
  std::ofstream(dir.path() + "/metrics") << Scrape();
  const std::string command =
      "promtool check metrics < " + dir.path() + "/metrics > " + dir.path() + "/out 2>&1";
  const int rc = std::system(command.c_str());
  std::ifstream out(dir.path() + "/out");
  EXPECT_EQ(rc, 0) << std::string(std::istreambuf_iterator<char>(out), {});
}

}  // namespace
}  // namespace mega::service
