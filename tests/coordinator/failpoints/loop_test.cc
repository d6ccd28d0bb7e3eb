// The loop on a disk that fails, once at every operation: whatever anybody heard of (an answer, an
// event, a record, a command to a worker) is there at the next start, and who asks again after the
// failure gets one job, not two.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/core/step.h"
#include "coordinator/service/loop.h"
#include "coordinator/service/read_model.h"
#include "coordinator/state/rocksdb/rocksdb_store.h"
#include "gtest/gtest.h"
#include "rocksdb/env.h"
#include "tests/coordinator/failpoints/crash_disk.h"
#include "tests/support/temp_dir.h"

namespace mega::service {
namespace {

using state::CrashDisk;
using state::DiskFault;

// All that left the process.
struct Heard {
  std::map<std::string, v1::ReplyCall> answers;  // by what was asked; of OK alone
  std::vector<v1::JobEvent> events;
  std::vector<v1::SendToWorker> commands;
  std::vector<v1::WitnessSet> witness_sets;
  std::map<std::string, v1::Job> jobs;  // as a reader saw them at the end
  int64_t revision = 0;
};

// One life of a coordinator, with a worker of two devices and a user who waits for each answer.
class Life {
 public:
  Life(state::StateStore& store, std::string name) : name_(std::move(name)) {
    absl::StatusOr<core::State> state = store.Load();
    if (!state.ok()) {
      has_failed_ = true;
      return;
    }
    reads_.Load(*state);
    Loop::Outlets outlets;
    outlets.send = [this](v1::SendToWorker send) { Sent(std::move(send)); };
    outlets.close_session = [](v1::CloseSession) {};
    outlets.ask_plan = [this](v1::AskPlan ask) { Answer(ask); };
    outlets.record_step = [](const v1::StepReport&) {};
    outlets.told_event = [this](const v1::JobEvent& event) {
      MutexLock lock(mu_);
      heard_.events.push_back(event);
    };
    outlets.failed = [this](absl::Status) {
      MutexLock lock(mu_);
      has_failed_ = true;
      changed_.NotifyAll();
    };
    outlets.measured_commit = [](double) {};
    outlets.measured_lag = [](double) {};
    Loop::Options options;
    options.new_cluster_id = "cluster";
    loop_ = std::make_unique<Loop>(*std::move(state), store, reads_, nullptr, clock_, options,
                                   std::move(outlets));
  }

  // False: the process has failed before it was true.
  bool Await(const std::function<bool(const Heard&)>& is_true) {
    MutexLock lock(mu_);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!has_failed_ && !is_true(heard_)) {
      if (!changed_.WaitUntil(mu_, deadline)) {
        ADD_FAILURE() << "neither an answer nor a failure";
        return false;
      }
    }
    return !has_failed_;
  }

  bool Submit(const std::string& name) {
    v1::CoreEvent event;
    v1::CoreSubmit& submit = *event.mutable_submit();
    submit.set_uid(name + " of the " + name_ + " life");  // drawn anew for each call
    submit.set_request_id("request of " + name);
    submit.mutable_metadata()->set_name(name);
    submit.mutable_spec()->mutable_parallelism()->set_data_parallel_size(1);
    *submit.mutable_resolved_spec() = submit.spec();
    return Ask("submit " + name, std::move(event));
  }
  bool Cancel(const std::string& name) {
    v1::CoreEvent event;
    {
      MutexLock lock(mu_);
      event.mutable_cancel()->set_uid(heard_.answers.at("submit " + name).job().uid());
    }
    return Ask("cancel " + name, std::move(event));
  }
  bool HelloIsAnswered() {
    v1::WorkerMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.mutable_node()->set_name("w0");
    hello.mutable_node()->set_boot_id("boot");
    hello.mutable_node()->set_state_folder_id("folder");
    hello.mutable_node()->set_incarnation(1);
    for (int64_t i = 0; i < 2; ++i) hello.mutable_node()->add_devices()->set_index(i);
    hello.set_heartbeat_seq(1);
    v1::CoreEvent event;
    event.mutable_worker()->set_node("w0");
    event.mutable_worker()->set_session(1);
    *event.mutable_worker()->mutable_message() = std::move(message);
    if (loop_) loop_->Put(std::move(event));
    return Await([this](const Heard&) MEGA_REQUIRES(mu_) { return has_lease_; });
  }
  bool IsStarted(const std::string& name) {
    return Await([&name](const Heard& heard) {
      const auto answer = heard.answers.find("submit " + name);
      for (const v1::SendToWorker& send : heard.commands) {
        const v1::Command& command = send.message().command();
        if (answer != heard.answers.end() &&
            command.start_ranks().job_uid() == answer->second.job().uid()) {
          return true;
        }
      }
      return false;
    });
  }

  Heard End() {
    if (loop_) loop_->Stop();
    MutexLock lock(mu_);
    for (const auto& job : reads_.RecentJobs(absl::InfinitePast())) heard_.jobs[job->uid()] = *job;
    heard_.revision = reads_.revision();
    return heard_;
  }

 private:
  bool Ask(const std::string& what, v1::CoreEvent event) {
    if (!loop_) return false;
    loop_->Call(std::move(event), [this, what](const v1::ReplyCall& reply) {
      MutexLock lock(mu_);
      if (reply.code() == 0) heard_.answers[what] = reply;
      changed_.NotifyAll();
    });
    return Await([&what](const Heard& heard) { return heard.answers.contains(what); });
  }
  void Sent(v1::SendToWorker send) {
    MutexLock lock(mu_);
    const v1::CoordinatorMessage& message = send.message();
    if (message.has_lease()) has_lease_ = true;
    if (message.lease().has_witnesses()) {
      heard_.witness_sets.push_back(message.lease().witnesses());
    }
    if (message.has_command()) heard_.commands.push_back(std::move(send));
    changed_.NotifyAll();
  }
  // On the loop's thread: the first free device.
  void Answer(const v1::AskPlan& ask) {
    v1::CoreEvent event;
    v1::CorePlanMade& made = *event.mutable_plan_made();
    made.set_job_uid(ask.job_uid());
    made.set_revision(ask.revision());
    if (ask.nodes_size() == 0 || ask.nodes(0).devices_size() == 0) {
      made.set_error("no device");
    } else {
      made.mutable_plan()->set_world_size(1);
      v1::RankPlacement& rank = *made.mutable_plan()->add_ranks();
      rank.set_node(ask.nodes(0).name());
      rank.set_device(ask.nodes(0).devices(0).index());
    }
    loop_->Put(std::move(event));
  }

  const std::string name_;
  const SystemClock clock_;
  ReadModel reads_;
  Mutex mu_;
  CondVar changed_;
  Heard heard_ MEGA_GUARDED_BY(mu_);
  bool has_lease_ MEGA_GUARDED_BY(mu_) = false;
  bool has_failed_ MEGA_GUARDED_BY(mu_) = false;
  std::unique_ptr<Loop> loop_;
};

// Everything that the user and the worker do; true: to the end.
bool Story(Life& life) {
  return life.HelloIsAnswered() && life.Submit("a") && life.IsStarted("a") && life.Submit("b") &&
         life.IsStarted("b") && life.Submit("c") && life.Cancel("c") && life.Cancel("a") &&
         life.Submit("d");
}

void ExpectStored(const Heard& heard, const core::State& stored) {
  const core::Durable& durable = stored.durable;
  for (const auto& [what, answer] : heard.answers) {
    const auto job = durable.jobs.find(answer.job().uid());
    ASSERT_NE(job, durable.jobs.end()) << "'" << what << "' was answered and is lost";
    const bool is_cancelled =
        job->second.cancel_requested() || job->second.phase() == v1::JOB_PHASE_CANCELLED;
    EXPECT_TRUE(is_cancelled || !what.starts_with("cancel")) << what;
  }
  for (const v1::JobEvent& event : heard.events) {
    const auto of_job = durable.events.find(event.job_uid());
    ASSERT_NE(of_job, durable.events.end()) << event.ShortDebugString();
    EXPECT_TRUE(of_job->second.contains(event.revision())) << event.ShortDebugString();
  }
  for (const auto& [uid, job] : heard.jobs) {
    const auto found = durable.jobs.find(uid);
    ASSERT_NE(found, durable.jobs.end()) << "'" << uid << "' was read and is lost";
    EXPECT_LE(std::stoll(job.etag()), std::stoll(found->second.etag())) << uid;
  }
  for (const v1::SendToWorker& send : heard.commands) {  // none was acked
    const v1::Command& command = send.message().command();
    EXPECT_TRUE(durable.commands.contains({send.node(), command.seq()}))
        << command.ShortDebugString();
    EXPECT_LT(command.start_ranks().epoch(), durable.meta.next_epoch());
  }
  for (const v1::WitnessSet& set : heard.witness_sets) {
    EXPECT_LT(set.number(), durable.meta.next_witness_set());
  }
  EXPECT_LE(heard.revision, durable.meta.revision());
}

class LoopFailpoints : public ::testing::TestWithParam<DiskFault> {};

TEST_P(LoopFailpoints, WhatWasHeardIsStoredAndWhoAsksAgainGetsTheSame) {
  int64_t points = 0;
  for (bool is_reached = true; is_reached; ++points) {
    SCOPED_TRACE(::testing::Message() << Name(GetParam()) << " at operation " << points + 1);
    const testing::TempDir folder;
    auto disk = std::make_shared<CrashDisk>(GetParam(), points + 1);
    const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
    Heard heard;
    if (auto store = state::RocksDbStore::Open(folder / "db", env.get()); store.ok()) {
      Life life(**store, "first");
      const bool is_whole = Story(life);
      heard = life.End();
      is_reached = disk->has_failed();
      EXPECT_TRUE(is_whole || is_reached);
    }
    disk->Restart();

    const std::unique_ptr<rocksdb::Env> sound =
        rocksdb::NewCompositeEnv(std::make_shared<CrashDisk>(DiskFault::kKill, 0));
    const auto store = state::RocksDbStore::Open(folder / "db", sound.get());
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    const auto stored = (*store)->Load();
    ASSERT_TRUE(stored.ok()) << stored.status().ToString();
    ExpectStored(heard, *stored);

    Life again(**store, "second");
    for (const char* name : {"a", "b", "c", "d"}) EXPECT_TRUE(again.Submit(name));
    const Heard second = again.End();
    EXPECT_EQ((*store)->Load()->durable.jobs.size(), 4u) << "one request id is one job";
    for (const auto& [what, answer] : heard.answers) {
      if (!what.starts_with("submit")) continue;
      EXPECT_EQ(answer.job().uid(), second.answers.at(what).job().uid()) << what;
    }
    if (HasFailure()) return;
  }
  // The story alone has a dozen commits of two operations.
  EXPECT_GT(points, 50);
}

INSTANTIATE_TEST_SUITE_P(Disk, LoopFailpoints,
                         ::testing::Values(DiskFault::kKill, DiskFault::kPowerCut,
                                           DiskFault::kTornCut, DiskFault::kIoError,
                                           DiskFault::kNoSpace),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace mega::service
