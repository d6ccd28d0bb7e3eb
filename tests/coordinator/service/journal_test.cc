#include "coordinator/service/journal.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "coordinator/service/replay.h"
#include "gmock/gmock.h"
#include "tests/coordinator/service/fake_worker.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

using testing::HasSubstr;

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

}  // namespace
}  // namespace mega::service
