// The history of steps may be slow to read; nothing else is.
#include <future>

#include "base/mutex.h"
#include "coordinator/state/memory_store.h"
#include "gmock/gmock.h"
#include "tests/coordinator/service/fake_worker.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

// Reads of steps wait until the gate opens.
class GatedStore : public state::MemoryStore {
 public:
  absl::StatusOr<std::vector<v1::StepReport>> ReadSteps(const std::string& job_uid,
                                                        int64_t from_step,
                                                        int64_t limit) const override {
    {
      MutexLock lock(mu_);
      ++waiting_;
      changed_.NotifyAll();
      while (!open_) changed_.WaitFor(mu_, std::chrono::seconds(1));
    }
    return MemoryStore::ReadSteps(job_uid, from_step, limit);
  }
  void Open() {
    MutexLock lock(mu_);
    open_ = true;
    changed_.NotifyAll();
  }
  void AwaitReader() {
    MutexLock lock(mu_);
    while (waiting_ == 0) changed_.WaitFor(mu_, std::chrono::seconds(1));
  }

 private:
  mutable Mutex mu_;
  mutable CondVar changed_;
  mutable int waiting_ MEGA_GUARDED_BY(mu_) = 0;
  bool open_ MEGA_GUARDED_BY(mu_) = false;
};

class HistoryTest : public ServiceTest {
 protected:
  void TearDown() override {
    store_.Open();
    StopCoordinator();
  }
  GatedStore store_;
};

TEST_F(HistoryTest, ASlowDiskHoldsUpOnlyThoseWhoAskForSteps) {
  StartCoordinator(&store_);
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  MustSubmit(Request("slow", 1, 2));
  v1::Command command;
  ASSERT_TRUE(worker.AwaitCommand(v1::Command::kStartRanks, &command));
  auto steps = std::async(std::launch::async, [&] { return Steps("slow", 1, true); });
  store_.AwaitReader();

  // Another stream of the same job, and all the rest.
  EXPECT_GE(Events("slow", 0, false).size(), 1u);
  EXPECT_EQ(GetJob("slow").phase(), v1::JOB_PHASE_STARTING);
  worker.Ready(command.start_ranks());
  ASSERT_TRUE(worker.Report(command.start_ranks(), 1, 2).ok());
  worker.Exit(command.start_ranks(), 0);
  AwaitPhase("slow", v1::JOB_PHASE_SUCCEEDED);

  store_.Open();
  EXPECT_EQ(steps.get().size(), 2u);
}

}  // namespace
}  // namespace mega::service
