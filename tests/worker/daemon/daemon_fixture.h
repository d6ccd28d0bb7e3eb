// Test support: the whole daemon in this process, real engines' stand-ins below it, a scripted
// coordinator above.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tests/support/eventually.h"
#include "tests/support/temp_dir.h"
#include "tests/worker/daemon/scripted_coordinator.h"
#include "worker/daemon/daemon.h"

namespace mega::daemon {

using Heard = mega::testing::ScriptedCoordinator::Heard;

inline constexpr char kJob[] = "job-1";

using mega::testing::EventuallyWithin;

inline bool Eventually(const std::function<bool()>& condition) {
  return EventuallyWithin(absl::Seconds(20), condition);
}

inline v1::WorkerRecord ReadRecord(const std::filesystem::path& state_dir) {
  v1::WorkerRecord record;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(
                  mega::testing::ReadFile(state_dir / "worker.json"), &record)
                  .ok());
  return record;
}

inline std::string Scrape(const std::string& address) {
  FILE* pipe = popen(("curl -sf http://" + address + "/metrics").c_str(), "r");
  std::string text;
  char buffer[4096];
  while (size_t got = fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, got);
  EXPECT_EQ(pclose(pipe), 0);
  return text;
}

class DaemonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto daemon = Daemon::Start(MakeOptions(), clock_);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }

  Daemon::Options MakeOptions() {
    Daemon::Options options;
    options.coordinator = coordinator_.address();
    options.node = "node-a";
    options.state_dir = folder_ / "state";
    options.devices = 2;
    options.engine = std::string(MEGA_BIN_DIR) + "/fake_engine";
    options.labels = {{"rack", "7"}};
    options.lease.heartbeat = absl::Milliseconds(100);
    options.log = {.segment_bytes = 64 << 10, .segments = 16};
    return options;
  }

  static v1::Command StartOrder(const std::string& script, std::vector<int64_t> ranks = {0},
                                int64_t attempt = 1) {
    v1::Command command;
    v1::StartRanks& start = *command.mutable_start_ranks();
    start.set_job_uid(kJob);
    start.set_job_name(script);
    start.set_attempt(attempt);
    start.set_epoch(attempt);
    for (const int64_t rank : ranks) start.add_ranks(rank);
    start.mutable_plan()->set_world_size(2);
    for (int64_t rank = 0; rank < 2; ++rank) {
      v1::RankPlacement& placement = *start.mutable_plan()->add_ranks();
      placement.set_rank(rank);
      placement.set_node("node-a");
      placement.set_device(rank);
    }
    return command;
  }

  static v1::Command StopOrder(absl::Duration grace) {
    v1::Command command;
    v1::StopRanks& stop = *command.mutable_stop_ranks();
    stop.set_job_uid(kJob);
    stop.set_attempt(1);
    stop.set_epoch(1);
    stop.set_reason("the test says so");
    *stop.mutable_grace() = ToProto(grace);
    return command;
  }

  // From here on; the worker's first lease may have been a long one.
  bool ShortenLeases() {
    coordinator_.SetTtl(absl::Milliseconds(800));
    const int before = coordinator_.heard().heartbeats;
    return coordinator_.Await([&](const Heard& heard) { return heard.heartbeats > before + 1; });
  }

  // A rank ran, and ended with its lease; the coordinator does not answer since.
  bool LoseLease() {
    if (!ShortenLeases()) return false;
    coordinator_.Order(StartOrder("ready;hang"));
    if (!AwaitReady()) return false;
    coordinator_.SetAnswering(false);
    return coordinator_.AwaitExits(1);
  }

  v1::ExitStatus OnlyExit() {
    EXPECT_TRUE(coordinator_.AwaitExits(1));
    const auto exits = coordinator_.Exits();
    return exits.empty() ? v1::ExitStatus() : exits.front().exit();
  }

  bool AwaitReady(size_t count = 1) { return coordinator_.AwaitReady(count); }

  // As the next incarnation would read it.
  v1::WorkerRecord Record() { return ReadRecord(folder_ / "state"); }
  pid_t Pid() {
    const v1::WorkerRecord record = Record();
    return record.ranks_size() == 0 ? 0 : static_cast<pid_t>(record.ranks(0).pid());
  }
  std::string LogText(int64_t rank = 0, int64_t attempt = 1) {
    return mega::testing::ReadFile(folder_ /
                                   fmt::format("state/jobs/{}/a{}-r{}.log", kJob, attempt, rank));
  }

  mega::testing::TempDir folder_;
  SystemClock clock_;
  mega::testing::ScriptedCoordinator coordinator_;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace mega::daemon
