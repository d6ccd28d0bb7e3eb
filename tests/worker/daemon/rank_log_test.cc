#include "worker/daemon/rank_log.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "gtest/gtest.h"
#include "tests/support/failing_readdir.h"
#include "tests/support/temp_dir.h"

namespace mega::daemon {
namespace {

constexpr RankLog::Options kSmall{.segment_bytes = 100, .segments = 4, .tail_bytes = 64};

std::string ReadAll(RankLog& log, int64_t offset = 0) {
  std::string all;
  while (true) {
    const auto read = log.ReadAt(offset, 37, absl::ZeroDuration());
    EXPECT_TRUE(read.ok()) << read.status();
    if (!read.ok() || read->data.empty()) return all;
    all += read->data;
    offset = read->offset + static_cast<int64_t>(read->data.size());
  }
}

std::string Bytes(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = first; i < first + count; ++i) text += static_cast<char>('a' + i % 23);
  return text;
}

TEST(RankLog, OffsetsStayTrueOverRotations) {
  testing::TempDir folder;
  const auto log = *RankLog::Open(folder / "a1-r0.log", kSmall, true);
  for (int64_t i = 0; i < 390; i += 13) log->Append(Bytes(i, 13), false);
  EXPECT_EQ(log->end_offset(), 390);
  for (int64_t offset = 0; offset < 390; ++offset) {
    const auto read = log->ReadAt(offset, 5, absl::ZeroDuration());
    ASSERT_TRUE(read.ok());
    ASSERT_EQ(read->offset, offset);
    ASSERT_EQ(read->data, Bytes(offset, static_cast<int64_t>(read->data.size())));
  }
  EXPECT_EQ(ReadAll(*log), Bytes(0, 390));
}

// As on a full disk.
TEST(RankLog, SaysHowManyBytesAreLostAndGoesOnWhenTheyAreNot) {
  testing::TempDir folder;
  const auto log = *RankLog::Open(folder / "a1-r0.log", kSmall, true);
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{40, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const size_t lost = log->Append(Bytes(0, 60), false);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(lost, 20u);
  EXPECT_EQ(log->Append("more", false), 0u);
  EXPECT_EQ(ReadAll(*log), Bytes(0, 40) + "more");
}

// To open it would wait for somebody who writes.
TEST(RankLog, APipeIsNoLog) {
  testing::TempDir folder;
  const std::string path = folder / "a1-r0.log";
  const auto log = *RankLog::Open(path, kSmall, true);
  log->Append(Bytes(0, 150), false);
  std::filesystem::remove(path + ".0");
  ASSERT_EQ(mkfifo((path + ".0").c_str(), 0600), 0);
  EXPECT_EQ(log->ReadAt(0, 10, absl::ZeroDuration()).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(mkfifo((folder / "a1-r1.log").c_str(), 0600), 0);
  EXPECT_EQ(RankLog::Open(folder / "a1-r1.log", kSmall, true).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(RankLog, KeepsTheNewestSegmentsAndSaysWhereTheyBegin) {
  testing::TempDir folder;
  const auto log = *RankLog::Open(folder / "a1-r0.log", kSmall, true);
  log->Append(Bytes(0, 1050), false);
  const auto read = log->ReadAt(0, 10, absl::ZeroDuration());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->offset, 700);  // 700–800, 800–900, 900–1000 and the newest
  EXPECT_EQ(ReadAll(*log), Bytes(700, 350));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    files += entry.is_regular_file();
    EXPECT_LE(entry.file_size(), 100u);
  }
  EXPECT_EQ(files, 4);
}

TEST(RankLog, IsTheSameAfterItWasOpenedAgain) {
  testing::TempDir folder;
  {
    const auto log = *RankLog::Open(folder / "a1-r0.log", kSmall, true);
    log->Append(Bytes(0, 250), false);
  }
  const auto ended = *RankLog::Open(folder / "a1-r0.log", kSmall, false);
  EXPECT_EQ(ended->end_offset(), 250);
  EXPECT_EQ(ReadAll(*ended), Bytes(0, 250));
  EXPECT_TRUE(ended->ReadAt(250, 10, absl::Seconds(20))->end);  // no wait: nobody writes it
}

TEST(RankLog, DoesNotTakeAnotherRanksSegmentsForItsOwn) {
  testing::TempDir folder;
  const auto first = *RankLog::Open(folder / "a1-r1.log", kSmall, true);
  first->Append(Bytes(0, 250), false);
  const auto other = *RankLog::Open(folder / "a1-r11.log", kSmall, true);
  EXPECT_EQ(other->end_offset(), 0);
}

TEST(RankLog, AMissingLogIsAnErrorThatNamesIt) {
  testing::TempDir folder;
  const auto log = RankLog::Open(folder / "a1-r0.log", kSmall, false);
  ASSERT_FALSE(log.ok());
  EXPECT_NE(std::string(log.status().message()).find("a1-r0.log"), std::string::npos);
}

TEST(RankLog, KeepsTheEndOfStderrOnly) {
  testing::TempDir folder;
  const auto log = *RankLog::Open(folder / "a1-r0.log", kSmall, true);
  log->Append("to stdout", false);
  for (int64_t i = 0; i < 500; i += 7) log->Append(Bytes(i, 7), true);
  EXPECT_EQ(log->StderrTail(), Bytes(504 - 64, 64));
}

TEST(RankLog, AReaderThatWaitsGetsWhatComes) {
  testing::TempDir folder;
  const auto log = *RankLog::Open(folder / "a1-r0.log", kSmall, true);
  std::jthread writer([&] { log->Append("news", false); });
  const auto read = log->ReadAt(0, 100, absl::Seconds(20));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->data, "news");
  EXPECT_FALSE(read->end);
  std::jthread closer([&] { log->Close(); });
  EXPECT_TRUE(log->ReadAt(4, 100, absl::Seconds(20))->end);
}

TEST(RankLog, ReadersAndTheWriterDoNotDisturbEachOther) {
  testing::TempDir folder;
  RankLog::Options options = kSmall;
  options.segments = 1000;  // nothing is removed
  const auto log = *RankLog::Open(folder / "a1-r0.log", options, true);
  constexpr int64_t kTotal = 20'000;
  std::jthread writer([&] {
    for (int64_t i = 0; i < kTotal; i += 40) log->Append(Bytes(i, 40), false);
    log->Close();
  });
  std::string all;
  while (true) {
    const auto read = log->ReadAt(static_cast<int64_t>(all.size()), 64, absl::Seconds(20));
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->offset, static_cast<int64_t>(all.size()));
    all += read->data;
    if (read->end) break;
  }
  EXPECT_EQ(all, Bytes(0, kTotal));
}

// Case: a disk failed in the middle of the folder, and the worker ended; had it gone on, the log
// would have begun at 0 again.
TEST(RankLog, IsNotOpenedWhereItsSegmentsCannotBeListed) {
  testing::TempDir folder;
  (*RankLog::Open(folder / "a1-r0.log", kSmall, true))->Append(Bytes(0, 350), false);
  for (int entries = 0; entries < 6; ++entries) {
    const testing::FailingReaddir failing(entries);
    const auto log = RankLog::Open(folder / "a1-r0.log", kSmall, true);
    ASSERT_FALSE(log.ok()) << entries;
    EXPECT_NE(std::string(log.status().message()).find(folder.path()), std::string::npos);
  }
  EXPECT_EQ((*RankLog::Open(folder / "a1-r0.log", kSmall, true))->end_offset(), 350);
}

}  // namespace
}  // namespace mega::daemon
