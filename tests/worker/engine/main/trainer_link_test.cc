// How a rank leaves when its worker does not behave: a process that hangs holds its devices, and
// its job stands still.
#include "worker/engine/main/trainer_link.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/worker/engine/main/scripted_worker.h"
#include "worker/engine/main/exit_codes.h"
#include "worker/engine/main/train.h"

namespace mega::engine {
namespace {

constexpr unsigned kTooLongSeconds = 20;

// Takes all words and never ends the stream.
class HoldingWorker final : public ScriptedWorker {
 public:
  using ScriptedWorker::ScriptedWorker;

  grpc::Status Attach(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::TrainerMessage, v1::EngineMessage>* stream) override {
    const grpc::Status status = ScriptedWorker::Attach(context, stream);
    pause();  // the test ends its process
    return status;
  }
};

// The death tests start anew: the threads of a server do not survive a fork.
class TrainerLinkDeath : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Case: the stream was waited for without an end, and nobody could cancel it any more.
TEST_F(TrainerLinkDeath, AnOrderThatCannotBeParsedEndsTheRank) {
  testing::TempDir dir;
  EXPECT_EXIT(
      {
        alarm(kTooLongSeconds);
        v1::StartTraining start = StartOf(TinyJob(dir), dir);
        start.set_run_directory("/tmp/\xff");
        const ScriptedWorker worker(dir, start);
        _exit(Train({.socket = worker.socket(), .rank = start.rank()}));
      },
      ::testing::ExitedWithCode(kExitWorkerGone), "cannot be parsed");
}

// Case: the lease was no longer watched once the rank began to leave.
TEST_F(TrainerLinkDeath, ALeaseEndsARankThatIsLeaving) {
  testing::TempDir dir;
  EXPECT_EXIT(
      {
        alarm(kTooLongSeconds);
        const SystemClock clock;
        v1::StartTraining start = StartOf(TinyJob(dir), dir);
        start.mutable_lease_end()->set_boottime_ns(
            absl::ToInt64Nanoseconds(clock.BootNow() + absl::Seconds(1)));
        HoldingWorker worker(dir, start);
        {
          TrainerLink link({.socket = worker.socket(), .rank = start.rank()}, clock);
          MEGA_CHECK_OK(link.WaitForStart(absl::Seconds(30)));
        }
        _exit(kExitOk);
      },
      ::testing::ExitedWithCode(kExitLeaseEnded), "the lease ended");
}

}  // namespace
}  // namespace mega::engine
