// Two ranks, one of them on a disk that takes its time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/worker/engine/main/scripted_worker.h"

namespace {

std::atomic<bool> disk_is_slow{false};

}  // namespace

// In the place of libc's: while the disk is slow, the files of rank 1 take two seconds and a half.
extern "C" int fsync(int fd) {
  char path[PATH_MAX];
  const ssize_t n = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof(path));
  if (disk_is_slow && n > 0 &&
      std::string(path, static_cast<size_t>(n)).find("-r00001.") != std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // the disk's time
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace mega::engine {
namespace {

v1::RankAddress AddressOf(const ScriptedWorker& worker, int64_t rank) {
  v1::RankAddress address;
  address.set_rank(rank);
  address.set_address(
      worker.WaitFor([](const v1::EngineMessage& message) { return message.has_ready(); })
          .ready()
          .address());
  return address;
}

// Case: a run of days was over, one rank's last file took longer than a collective may, and the job
// began again.
TEST(SlowDisk, AFinishedRunWaitsForItsLastSaveLongerThanForACollective) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_parallelism()->set_data_parallel_size(2);
  spec.mutable_health()->mutable_hang()->mutable_collective_timeout()->set_seconds(1);
  v1::StartTraining starts[2] = {StartOf(spec, dir), StartOf(spec, dir)};
  starts[1].mutable_rank()->set_rank(1);
  ScriptedWorker zero(dir, starts[0], {.connects = false});
  ScriptedWorker one(dir, starts[1], {.connects = false});
  disk_is_slow = true;
  const auto begin = std::chrono::steady_clock::now();
  {
    std::jthread first([&] { EXPECT_EQ(RunRank(starts[0], zero), absl::OkStatus()); });
    std::jthread second([&] { EXPECT_EQ(RunRank(starts[1], one), absl::OkStatus()); });
    v1::TrainerMessage connect;
    *connect.mutable_connect()->add_addresses() = AddressOf(zero, 0);
    *connect.mutable_connect()->add_addresses() = AddressOf(one, 1);
    zero.Send(connect);
    one.Send(connect);
  }
  disk_is_slow = false;
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2400));
  EXPECT_EQ(zero.committed().size(), 1);
  EXPECT_EQ(one.committed().size(), 1);
}

}  // namespace
}  // namespace mega::engine
