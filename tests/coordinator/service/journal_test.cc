#include "coordinator/service/journal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/unique_fd.h"
#include "coordinator/service/replay.h"
#include "gmock/gmock.h"
#include "tests/coordinator/service/fake_worker.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

using ::testing::HasSubstr;

class JournalTest : public ServiceTest {
 protected:
  std::string folder() const { return options_.state_dir + "/journal"; }

  // A job that fails once and then succeeds, over two coordinators.
  void LiveALife() {
    StartCoordinator();
    FakeWorker worker("w0", 1);
    worker.Connect(address());
    MustSubmit(Request("lived", 1, 3));
    v1::Command command;
    ASSERT_TRUE(worker.AwaitCommand(v1::Command::kStartRanks, &command));
    worker.Exit(command.start_ranks(), 1, "first try");
    ASSERT_TRUE(worker.AwaitCommand(v1::Command::kStartRanks, &command));
    worker.Ready(command.start_ranks());
    StopCoordinator();
    StartCoordinator();
    worker.Connect(address());
    ASSERT_TRUE(worker.AwaitLease(1));
    ASSERT_TRUE(worker.Report(command.start_ranks(), 1, 3).ok());
    worker.Exit(command.start_ranks(), 0);
    AwaitPhase("lived", v1::JOB_PHASE_SUCCEEDED);
    StopCoordinator();
  }
};

void Overwrite(const std::string& path, int64_t offset, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  file.put(byte);
}

TEST_F(JournalTest, ReplayDecidesEverythingTheSameAgain) {
  LiveALife();
  std::ostringstream out;
  const auto result = Replay(options_.state_dir, 0, out);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->segments, 2);
  EXPECT_GT(result->inputs, 20);
  EXPECT_EQ(result->differences, 0) << out.str();
  EXPECT_EQ(result->left_out, 0);
}

TEST_F(JournalTest, ReplayShowsADecisionThatDiffers) {
  core::State state;
  v1::CoreEvent event;
  event.mutable_started()->set_coordinator_epoch(1);
  {
    Journal journal(folder(), 1 << 20);
    journal.StartSegment(core::ToSnapshot(state));
    journal.Append(event, DecisionHash(core::Step(state, event)) ^ 1);
  }
  std::ostringstream out;
  const auto result = Replay(folder(), 0, out);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->differences, 1);
  EXPECT_THAT(out.str(), HasSubstr("input 1 is decided otherwise"));
}

TEST_F(JournalTest, StaysBelowItsBoundAndReplaysWhatIsLeft) {
  constexpr int64_t kBound = 256 << 10;
  core::State state;
  {
    Journal journal(folder(), kBound);
    v1::CoreEvent event;
    event.mutable_cancel()->set_uid(std::string(1000, 'x'));
    for (int i = 0; i < 2000; ++i) {
      if (journal.WantsSnapshot()) journal.StartSegment(core::ToSnapshot(state));
      journal.Append(event, DecisionHash(core::Step(state, event)));
    }
  }
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    bytes += static_cast<int64_t>(entry.file_size());
  }
  EXPECT_LE(bytes, kBound + kBound / 8);
  EXPECT_GE(bytes, kBound / 2);
  std::ostringstream out;
  const auto result = Replay(folder(), 0, out);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->differences, 0);
  EXPECT_GT(result->inputs, 50);
}

// Otherwise a state larger than a segment's share would be written again with every input.
TEST_F(JournalTest, ALargeStateIsWrittenOnceInAsManyBytesOfInputs) {
  core::State state;
  state.durable.jobs["large"].set_uid("large");
  state.durable.jobs["large"].set_reason(std::string(100 << 10, 'x'));
  v1::CoreEvent event;
  event.mutable_cancel()->set_uid(std::string(1000, 'x'));
  int snapshots = 0;
  {
    Journal journal(folder(), 256 << 10);  // 16 KiB a segment
    for (int i = 0; i < 500; ++i) {
      if (journal.WantsSnapshot()) {
        ++snapshots;
        journal.StartSegment(core::ToSnapshot(state));
      }
      journal.Append(event, DecisionHash(core::Step(state, event)));
    }
  }
  EXPECT_LE(snapshots, 5);  // 500 KB of inputs
  std::ostringstream out;
  EXPECT_EQ(Replay(folder(), 0, out)->differences, 0) << out.str();
}

// Case: a snapshot above 1 GiB was written, and read back as a torn end, with all that followed it.
TEST_F(JournalTest, AStateTooLargeForASnapshotStopsTheJournalUntilItIsSmaller) {
  core::State small;
  core::State large;
  large.durable.jobs["large"].set_uid("large");
  large.durable.jobs["large"].set_reason(std::string(100 << 10, 'x'));
  v1::CoreEvent event;
  event.mutable_cancel()->set_uid(std::string(1000, 'x'));
  constexpr int kInputs = 300;
  int snapshots = 0;
  {
    Journal journal(folder(), 16 << 20, /*most_waiting_bytes=*/64 << 20,
                    /*most_snapshot_bytes=*/50 << 10);
    for (int i = 0; i < kInputs; ++i) {
      if (journal.WantsSnapshot()) {
        ++snapshots;
        journal.StartSegment(core::ToSnapshot(large));
      }
      journal.Append(event, 0);
    }
    EXPECT_EQ(JournalSegments(folder())->size(), 0u);
    EXPECT_EQ(snapshots, 1) << "each costs a copy of the state";
    while (!journal.WantsSnapshot()) journal.Append(event, 0);  // as much as a segment takes
    journal.StartSegment(core::ToSnapshot(small));
    journal.Append(event, DecisionHash(core::Step(small, event)));
  }
  ASSERT_EQ(JournalSegments(folder())->size(), 1u);
  std::ostringstream out;
  const auto result = Replay(folder(), 0, out);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->inputs, 1);
  EXPECT_EQ(result->differences, 0) << out.str();
}

TEST_F(JournalTest, ADiskThatIsBehindIsGivenNoSnapshots) {
  core::State state;
  v1::CoreEvent event;
  event.mutable_cancel()->set_uid(std::string(1000, 'x'));
  Journal journal(folder(), 1 << 20, /*most_waiting_bytes=*/8 << 10);
  // The first segment's file takes next to nothing until somebody reads.
  const std::string first = folder() + "/00000000000000000001.journal";
  ASSERT_EQ(mkfifo(first.c_str(), 0600), 0);
  UniqueFd disk(open(first.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_GT(fcntl(disk.get(), F_SETPIPE_SZ, 4096), 0);
  ASSERT_EQ(fcntl(disk.get(), F_SETFL, 0), 0);
  ASSERT_TRUE(journal.WantsSnapshot());
  journal.StartSegment(core::ToSnapshot(state));
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(journal.WantsSnapshot()) << i;
    journal.Append(event, DecisionHash(core::Step(state, event)));
  }
  std::jthread reader([&] {
    pollfd written{.fd = disk.get(), .events = POLLIN, .revents = 0};
    poll(&written, 1, -1);  // before that, a read is at the end
    for (char buffer[4096]; read(disk.get(), buffer, sizeof(buffer)) > 0;) {
    }
  });
  const absl::Time deadline = absl::Now() + kPatience;
  while (!journal.WantsSnapshot() && absl::Now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(journal.WantsSnapshot());           // inputs were left out
  journal.StartSegment(core::ToSnapshot(state));  // ends the first file, and with it the reader
}

// Case: the thread that writes waited for a reader, and the coordinator could not be stopped.
TEST_F(JournalTest, APipeThatNobodyReadsIsNoSegmentAndIsNotWaitedFor) {
  const core::State state;
  const std::string first = folder() + "/00000000000000000001.journal";
  Journal journal(folder(), 1 << 20);
  ASSERT_EQ(mkfifo(first.c_str(), 0600), 0);
  journal.StartSegment(core::ToSnapshot(state));
}

TEST_F(JournalTest, TornEndIsToleratedAtEveryByte) {
  core::State state;
  v1::CoreEvent event;
  event.mutable_tick();
  {
    Journal journal(folder(), 1 << 20);
    journal.StartSegment(core::ToSnapshot(state));
    for (int i = 0; i < 3; ++i) journal.Append(event, DecisionHash(core::Step(state, event)));
  }
  const std::string path = JournalSegments(folder())->at(0);
  for (auto size = std::filesystem::file_size(path); size > 0; --size) {
    std::filesystem::resize_file(path, size - 1);
    bool torn = false;
    EXPECT_TRUE(ReadSegment(
                    path, [](const v1::JournalRecord&) { return absl::OkStatus(); }, &torn)
                    .ok())
        << size;
  }
}

TEST_F(JournalTest, DamageInTheMiddleIsReported) {
  core::State state;
  v1::CoreEvent event;
  event.mutable_tick();
  {
    Journal journal(folder(), 1 << 20);
    journal.StartSegment(core::ToSnapshot(state));
    for (int i = 0; i < 3; ++i) journal.Append(event, DecisionHash(core::Step(state, event)));
  }
  const std::string path = JournalSegments(folder())->at(0);
  Overwrite(path, 8 + 8 + 2, '\xff');
  std::ostringstream out;
  EXPECT_EQ(Replay(folder(), 0, out).status().code(), absl::StatusCode::kDataLoss);
  Overwrite(path, 0, 'X');
  EXPECT_THAT(Replay(folder(), 0, out).status().message(), HasSubstr("no journal segment"));
}

TEST_F(JournalTest, NumbersGoOnAfterARestart) {
  core::State state;
  v1::CoreEvent event;
  event.mutable_tick();
  for (int life = 0; life < 2; ++life) {
    Journal journal(folder(), 1 << 20);
    journal.StartSegment(core::ToSnapshot(state));
    journal.Append(event, DecisionHash(core::Step(state, event)));
  }
  const auto segments = JournalSegments(folder());
  ASSERT_TRUE(segments.ok());
  EXPECT_EQ(segments->size(), 2u);
  std::ostringstream out;
  EXPECT_EQ(Replay(folder(), 2, out)->inputs, 1);
}

TEST_F(JournalTest, NumbersGoOnAfterASegmentThatWasOnlyBegun) {
  core::State state;
  v1::CoreEvent event;
  event.mutable_tick();
  std::filesystem::create_directories(folder());
  std::ofstream(folder() + "/00000000000000000500.journal") << "MEGAJNL1";
  {
    Journal journal(folder(), 1 << 20);
    journal.StartSegment(core::ToSnapshot(state));
    journal.Append(event, DecisionHash(core::Step(state, event)));
  }
  const auto segments = JournalSegments(folder());
  ASSERT_TRUE(segments.ok());
  EXPECT_THAT(segments->back(), HasSubstr("00000000000000000500"));
}

}  // namespace
}  // namespace mega::service
