// The order in which the loop lets things out, on a disk that stalls or fails.
#include "coordinator/service/loop.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <set>

#include "coordinator/service/submit_check.h"
#include "coordinator/state/memory_store.h"
#include "gmock/gmock.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

std::chrono::steady_clock::time_point Deadline() {
  return std::chrono::steady_clock::now() + absl::ToChronoSeconds(kPatience);
}

// A disk that stalls: a commit that holds a job of that name waits until it is let through. Or
// fails.
class StallingStore : public state::MemoryStore {
 public:
  absl::Status Commit(std::span<const v1::Mutation> mutations) override {
    {
      MutexLock lock(mu_);
      for (const v1::Mutation& mutation : mutations) {
        if (mutation.has_put_job()) begun_.insert(mutation.put_job().uid());
      }
      changed_.NotifyAll();
      const auto is_held = [&](const v1::Mutation& m) {
        return m.has_put_job() && held_.contains(m.put_job().uid());
      };
      while (std::any_of(mutations.begin(), mutations.end(), is_held)) {
        changed_.WaitFor(mu_, std::chrono::seconds(1));
      }
      if (fails_) return Unavailable("no space left on the device");
    }
    return MemoryStore::Commit(mutations);
  }
  void Hold(const std::string& uid) {
    MutexLock lock(mu_);
    held_.insert(uid);
  }
  void LetThrough(const std::string& uid) {
    MutexLock lock(mu_);
    held_.erase(uid);
    changed_.NotifyAll();
  }
  void LetAllThrough() {
    MutexLock lock(mu_);
    held_.clear();
    changed_.NotifyAll();
  }
  void Fail() {
    MutexLock lock(mu_);
    fails_ = true;
  }
  // Until the commit of the job has begun.
  bool AwaitCommit(const std::string& uid) {
    MutexLock lock(mu_);
    const auto deadline = Deadline();
    while (!begun_.contains(uid)) {
      if (!changed_.WaitUntil(mu_, deadline)) return false;
    }
    return true;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool fails_ MEGA_GUARDED_BY(mu_) = false;
  std::set<std::string> held_ MEGA_GUARDED_BY(mu_);
  std::set<std::string> begun_ MEGA_GUARDED_BY(mu_);
};

class LoopTest : public ::testing::Test {
 protected:
  void TearDown() override {
    store_.LetAllThrough();
    loop_.reset();
  }

  void Start(Loop::Options options = {}) {
    Loop::Outlets outlets;
    outlets.send = [this](v1::SendToWorker send) {
      MutexLock lock(mu_);
      sent_.push_back(std::move(send));
      changed_.NotifyAll();
    };
    outlets.close_session = [](v1::CloseSession) {};
    outlets.ask_plan = [this](v1::AskPlan) {
      MutexLock lock(mu_);
      ++plans_asked_;
      changed_.NotifyAll();
    };
    outlets.record_step = [](const v1::StepReport&) {};
    outlets.told_event = [](const v1::JobEvent&) {};
    outlets.failed = [this](absl::Status status) {
      MutexLock lock(mu_);
      failures_.push_back(std::move(status));
      changed_.NotifyAll();
    };
    outlets.measured_commit = [](double) {};
    outlets.measured_lag = [](double) {};
    loop_ = std::make_unique<Loop>(core::State(), store_, reads_, nullptr, clock_, options,
                                   std::move(outlets));
  }

  bool Await(const std::function<bool()>& condition) {
    MutexLock lock(mu_);
    const auto deadline = Deadline();
    while (!condition()) {
      if (!changed_.WaitUntil(mu_, deadline)) return condition();
    }
    return true;
  }
  // Until the loop has decided about everything given to it before. The first of the two may be
  // taken in one round with calls that come after it; the second is in a later round.
  void Settle() {
    for (int i = 0; i < 2; ++i) {
      std::promise<void> taken;
      v1::CoreEvent tick;
      tick.mutable_tick();
      loop_->Put(tick, [&] { taken.set_value(); });
      ASSERT_EQ(taken.get_future().wait_until(Deadline()), std::future_status::ready);
    }
  }

  // Submits job `name`, whose uid is the name too. False: refused.
  bool Submit(const std::string& name) {
    const v1::SubmitJobRequest request = ServiceTest::Request(name);
    CheckedSpec checked;
    EXPECT_TRUE(CheckSpec(request.metadata(), request.spec(), Purpose::kRun, &checked).ok());
    v1::CoreEvent event;
    v1::CoreSubmit& submit = *event.mutable_submit();
    submit.set_uid(name);
    submit.set_request_id(request.request_id());
    *submit.mutable_metadata() = checked.metadata;
    *submit.mutable_spec() = request.spec();
    *submit.mutable_resolved_spec() = checked.resolved;
    return loop_->Call(std::move(event), [this, name](const v1::ReplyCall& reply) {
      const bool is_readable = reads_.JobRecord(name) != nullptr;
      MutexLock lock(mu_);
      answers_[name] = reply;
      if (is_readable) readable_.insert(name);
      changed_.NotifyAll();
    });
  }
  bool Answered(const std::string& name) {
    MutexLock lock(mu_);
    return answers_.contains(name);
  }
  void SayHello(int64_t session) {
    v1::WorkerMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.mutable_node()->set_name("w0");
    hello.mutable_node()->set_boot_id("boot");
    hello.mutable_node()->set_incarnation(1);
    hello.mutable_node()->set_version("0.1.0");
    hello.mutable_node()->add_devices()->set_kind("cpu");
    hello.set_heartbeat_seq(1);
    Say(session, std::move(message));
  }
  void Beat(int64_t session, int64_t seq) {
    v1::WorkerMessage message;
    message.mutable_heartbeat()->set_seq(seq);
    Say(session, std::move(message));
  }
  void Say(int64_t session, v1::WorkerMessage message) {
    v1::CoreEvent event;
    event.mutable_worker()->set_node("w0");
    event.mutable_worker()->set_session(session);
    *event.mutable_worker()->mutable_message() = std::move(message);
    loop_->Put(std::move(event));
  }
  bool AwaitLease(int64_t seq) {
    return Await([&]() MEGA_REQUIRES(mu_) {
      return std::any_of(sent_.begin(), sent_.end(), [&](const v1::SendToWorker& send) {
        return send.message().has_lease() && send.message().lease().heartbeat_seq() >= seq;
      });
    });
  }

  const SystemClock clock_;
  StallingStore store_;
  ReadModel reads_;
  Mutex mu_;
  CondVar changed_;
  std::map<std::string, v1::ReplyCall> answers_ MEGA_GUARDED_BY(mu_);
  std::set<std::string> readable_ MEGA_GUARDED_BY(mu_);  // when they were answered
  std::vector<v1::SendToWorker> sent_ MEGA_GUARDED_BY(mu_);
  int plans_asked_ MEGA_GUARDED_BY(mu_) = 0;
  std::vector<absl::Status> failures_ MEGA_GUARDED_BY(mu_);
  std::unique_ptr<Loop> loop_;
};

TEST_F(LoopTest, NobodyHearsBeforeTheDiskHas) {
  Start();
  SayHello(1);
  ASSERT_TRUE(AwaitLease(1));
  store_.Hold("job");
  ASSERT_TRUE(Submit("job"));
  ASSERT_TRUE(store_.AwaitCommit("job"));
  Settle();
  EXPECT_FALSE(Answered("job"));
  EXPECT_EQ(reads_.JobRecord("job"), nullptr);
  EXPECT_EQ(reads_.EventAfter("job", 0).event, nullptr);
  {
    MutexLock lock(mu_);
    EXPECT_EQ(plans_asked_, 0);
  }

  store_.LetAllThrough();
  ASSERT_TRUE(Await([&]() MEGA_REQUIRES(mu_) { return answers_.contains("job"); }));
  MutexLock lock(mu_);
  EXPECT_EQ(answers_.at("job").code(), 0) << answers_.at("job").message();
  EXPECT_TRUE(readable_.contains("job"));  // who is answered can read it
}

TEST_F(LoopTest, EachAnswerWaitsForItsOwnCommitAndNoOther) {
  Start();
  store_.Hold("first");
  store_.Hold("second");
  ASSERT_TRUE(Submit("first"));
  ASSERT_TRUE(store_.AwaitCommit("first"));
  ASSERT_TRUE(Submit("second"));
  Settle();
  store_.LetThrough("first");
  ASSERT_TRUE(Await([&]() MEGA_REQUIRES(mu_) { return answers_.contains("first"); }));
  ASSERT_TRUE(store_.AwaitCommit("second"));
  Settle();
  EXPECT_FALSE(Answered("second"));
  EXPECT_EQ(reads_.JobRecord("second"), nullptr);
  store_.LetAllThrough();
  EXPECT_TRUE(Await([&]() MEGA_REQUIRES(mu_) { return answers_.contains("second"); }));
}

TEST_F(LoopTest, LeasesAreRenewedWhileACommitStalls) {
  Start();
  SayHello(1);
  ASSERT_TRUE(AwaitLease(1));
  store_.Hold("job");
  ASSERT_TRUE(Submit("job"));
  ASSERT_TRUE(store_.AwaitCommit("job"));
  for (int64_t seq = 2; seq < 5; ++seq) {
    Beat(1, seq);
    EXPECT_TRUE(AwaitLease(seq)) << seq;
  }
  EXPECT_FALSE(Answered("job"));
}

TEST_F(LoopTest, AFailedCommitIsToldOnceAndNothingIsPromisedAfterIt) {
  Start();
  ASSERT_TRUE(Submit("kept"));
  ASSERT_TRUE(Await([&]() MEGA_REQUIRES(mu_) { return answers_.contains("kept"); }));
  store_.Fail();
  ASSERT_TRUE(Submit("lost"));
  ASSERT_TRUE(Await([&]() MEGA_REQUIRES(mu_) { return !failures_.empty(); }));
  ASSERT_TRUE(Submit("later"));
  Settle();
  EXPECT_FALSE(Answered("lost"));
  EXPECT_FALSE(Answered("later"));
  EXPECT_EQ(reads_.JobRecord("lost"), nullptr);
  loop_->Stop();
  MutexLock lock(mu_);
  for (const char* name : {"lost", "later"}) {
    EXPECT_EQ(answers_.at(name).code(), static_cast<int>(absl::StatusCode::kUnavailable));
    EXPECT_FALSE(readable_.contains(name));
  }
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_THAT(std::string(failures_[0].message()), ::testing::HasSubstr("no space left"));
  EXPECT_EQ(store_.Load()->durable.jobs.size(), 1u);
}

TEST_F(LoopTest, CallsBeyondTheBoundAreRefusedAndWorkersNeverAre) {
  constexpr int kMost = 3;
  constexpr int kMessages = 100;
  Start({.most_calls_waiting = kMost});
  Settle();
  std::promise<void> busy, go_on;
  v1::CoreEvent tick;
  tick.mutable_tick();
  loop_->Put(tick, [&] {
    busy.set_value();
    go_on.get_future().wait();
  });
  busy.get_future().wait();  // the loop takes nothing now
  for (int i = 0; i < kMost; ++i) EXPECT_TRUE(Submit("job-" + std::to_string(i)));
  EXPECT_FALSE(Submit("too-many"));
  std::atomic<int> taken = 0;
  for (int i = 0; i < kMessages; ++i) loop_->Put(tick, [&] { ++taken; });
  go_on.set_value();

  EXPECT_TRUE(Await([&]() MEGA_REQUIRES(mu_) { return answers_.size() == kMost; }));
  EXPECT_FALSE(Answered("too-many"));
  EXPECT_EQ(taken, kMessages);
  EXPECT_TRUE(Submit("one-more"));  // there is room again
}

}  // namespace
}  // namespace mega::service
