// What a worker shows of its ranks: their output and its metrics.
#include <filesystem>

#include "gmock/gmock.h"
#include "tests/support/no_threads.h"
#include "tests/worker/daemon/daemon_fixture.h"
#include "worker/daemon/log_streams.h"

namespace mega::daemon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(DaemonTest, ALogIsByteExactOverFiveRotationsAndThreeReconnects) {
  // About 360 KiB in segments of 64 KiB, printed while it is read.
  coordinator_.Order(StartOrder("ready;spam=120000;file=" + (folder_ / "go1") +
                                ";spam=120000;file=" + (folder_ / "go2") + ";spam=120000;exit=0"));
  ASSERT_TRUE(AwaitReady());
  coordinator_.CutLogs(1, 3);
  std::string text;
  int requests = 0;
  bool end = false;
  while (!end && requests < 10) {
    v1::StreamLog request;
    const std::string id = fmt::format("stream-{}", ++requests);
    request.set_stream_id(id);
    request.set_job_uid(kJob);
    request.set_attempt(1);
    request.set_offset(static_cast<int64_t>(text.size()));
    request.set_follow(true);
    coordinator_.StreamLog(request);
    if (requests == 2) mega::testing::WriteFile(folder_ / "go1", "");
    if (requests == 3) mega::testing::WriteFile(folder_ / "go2", "");
    ASSERT_TRUE(coordinator_.Await(
        [&](const Heard& heard) { return heard.log_streams_ended.contains(id); }));
    const Heard heard = coordinator_.heard();
    for (const v1::LogChunk& chunk : heard.logs.at(id)) {
      ASSERT_EQ(chunk.offset(), static_cast<int64_t>(text.size()));
      ASSERT_LE(chunk.data().size(), 256u << 10);
      text += chunk.data();
      end = chunk.end();
    }
  }
  EXPECT_TRUE(end);
  EXPECT_GE(requests, 4);
  std::string expected;
  for (int part = 0; part < 3; ++part) {
    int64_t written = 0;
    for (int64_t number = 0; written < 120000; ++number) {
      const std::string line = fmt::format("line {:012} {}\n", number,
                                           std::string(static_cast<size_t>(number % 97), '.'));
      written += std::ssize(line);
      expected += line;
    }
  }
  EXPECT_EQ(text.size(), expected.size());
  EXPECT_TRUE(text == expected);
  EXPECT_GT(expected.size(), 5u << 16);
}

TEST_F(DaemonTest, AnEndedRanksLogCanStillBeRead) {
  coordinator_.Order(StartOrder("out=one;out=two;exit=0"));
  ASSERT_TRUE(coordinator_.AwaitExits(1));
  v1::StreamLog request;
  request.set_stream_id("tail");
  request.set_job_uid(kJob);
  request.set_attempt(1);
  request.set_tail_bytes(4);
  request.set_follow(true);
  coordinator_.StreamLog(request);
  request.set_stream_id("unknown");
  request.set_rank(7);
  coordinator_.StreamLog(request);
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) {
    return heard.log_streams_ended.contains("tail") && heard.log_streams_ended.contains("unknown");
  }));
  const Heard heard = coordinator_.heard();
  EXPECT_EQ(heard.logs.at("tail").front().data(), "two\n");
  EXPECT_EQ(heard.logs.at("tail").front().offset(), 4);
  EXPECT_TRUE(heard.logs.at("tail").back().end());
  EXPECT_TRUE(heard.logs.at("unknown").back().end());
}

// Case: the logs of every job that had ever run stayed, until the disk was full.
TEST_F(DaemonTest, LogsOfEndedJobsAreBoundedAndThoseOfLiveOnesStay) {
  daemon_.reset();
  Daemon::Options options = MakeOptions();
  options.kept_logs = {.bytes = 150};
  options.logs_listed = absl::Milliseconds(20);
  auto daemon = Daemon::Start(options, clock_);
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  daemon_ = *std::move(daemon);
  coordinator_.Order(StartOrder("ready;hang"));
  ASSERT_TRUE(AwaitReady());
  const auto written = [&](const std::string& log, int hours_ago) {
    std::filesystem::last_write_time(
        log, std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours_ago));
  };
  const std::string jobs = folder_ / "state/jobs/";
  written(jobs + kJob + "/a1-r0.log", 3);
  for (const std::string uid : {"newer", "older"}) {
    std::filesystem::create_directories(folder_ / uid);
    mega::testing::WriteFile(folder_ / (uid + "/a1-r0.log"), std::string(100, 'x'));
    written(folder_ / (uid + "/a1-r0.log"), uid == "newer" ? 1 : 2);
    std::filesystem::rename(folder_ / uid, jobs + uid);
  }
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(jobs + "older"); }));
  EXPECT_TRUE(std::filesystem::exists(jobs + "newer/a1-r0.log"));
  EXPECT_TRUE(std::filesystem::exists(jobs + kJob + "/a1-r0.log"));
}

TEST_F(DaemonTest, ALogThatCannotBeOpenedSaysWhy) {
  const std::string log = folder_ / fmt::format("state/jobs/{}/a1-r0.log", kJob);
  std::filesystem::create_directories(log);  // a folder in its place
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return !heard.hellos.empty(); }));
  v1::StreamLog request;
  request.set_stream_id("broken");
  request.set_job_uid(kJob);
  request.set_attempt(1);
  coordinator_.StreamLog(request);
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.logs.contains("broken"); }));
  const v1::LogChunk last = coordinator_.heard().logs.at("broken").back();
  EXPECT_THAT(last.error(), HasSubstr(log));
  EXPECT_FALSE(last.end());
}

TEST_F(DaemonTest, ACancelledLogStreamEnds) {
  coordinator_.Order(StartOrder("ready;out=hello;hang"));
  ASSERT_TRUE(AwaitReady());
  v1::StreamLog request;
  request.set_stream_id("follow");
  request.set_job_uid(kJob);
  request.set_attempt(1);
  request.set_follow(true);
  coordinator_.StreamLog(request);
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.logs.contains("follow"); }));
  request.set_cancel(true);
  coordinator_.StreamLog(request);
  EXPECT_TRUE(coordinator_.Await(
      [](const Heard& heard) { return heard.log_streams_ended.contains("follow"); }));
}

// Case: beyond 128 streams the worker said nothing, and the reader waited for ever.
TEST_F(DaemonTest, TooManyLogStreamsAreRefusedOutLoud) {
  coordinator_.Order(StartOrder("ready;out=hello;hang"));
  ASSERT_TRUE(AwaitReady());
  ASSERT_TRUE(Eventually([&] { return LogText() == "hello\n"; }));
  v1::StreamLog request;
  request.set_job_uid(kJob);
  request.set_attempt(1);
  request.set_follow(true);
  for (int i = 0; i < 128 + 200; ++i) {
    request.set_stream_id(fmt::format("stream-{}", i));
    coordinator_.StreamLog(request);
  }
  ASSERT_TRUE(
      coordinator_.Await([](const Heard& heard) { return heard.logs.size() == 128 + 200; }));
  int refused = 0;
  const Heard heard = coordinator_.heard();
  for (const auto& [id, chunks] : heard.logs) {
    if (chunks.front().error().empty()) {
      EXPECT_EQ(chunks.front().data(), "hello\n") << id;
    } else {
      EXPECT_THAT(chunks.front().error(), HasSubstr("too many log streams (128)"));
      ++refused;
    }
  }
  EXPECT_EQ(refused, 200);
  // Room comes back with the end of one.
  request.set_stream_id("stream-0");
  request.set_cancel(true);
  coordinator_.StreamLog(request);
  ASSERT_TRUE(coordinator_.Await(
      [](const Heard& heard) { return heard.log_streams_ended.contains("stream-0"); }));
  request.set_cancel(false);
  EXPECT_TRUE(Eventually([&, i = 0]() mutable {
    const std::string id = fmt::format("later-{}", ++i);
    request.set_stream_id(id);
    coordinator_.StreamLog(request);
    return coordinator_.Await([&](const Heard& heard) { return heard.logs.contains(id); }) &&
           coordinator_.heard().logs.at(id).front().error().empty();
  }));
}

TEST_F(DaemonTest, MetricsShowARankWhileItRunsAndPromtoolAgrees) {
  coordinator_.Order(StartOrder("ready;steps=7;hang"));
  ASSERT_TRUE(coordinator_.Await([](const Heard& heard) { return heard.steps.size() == 7; }));
  const std::string text = Scrape(daemon_->metrics_address());
  EXPECT_THAT(
      text,
      AllOf(
          HasSubstr("mega_rank_step{rank=\"0\",training_job=\"ready;steps=7;hang\"} 7"),
          HasSubstr("mega_rank_step_seconds{rank=\"0\",training_job=\"ready;steps=7;hang\"} 0.25"),
          HasSubstr("mega_worker_info{node=\"node-a\""), HasSubstr("mega_node_cpu_seconds_total"),
          HasSubstr("mega_session_connected 1"),
          HasSubstr("mega_worker_step_reports_dropped_total"),
          Not(HasSubstr("\nmega_step_reports_dropped_total"))));
  EXPECT_TRUE(Eventually([&] {
    return Scrape(daemon_->metrics_address()).find("mega_worker_devices{state=\"in_use\"} 1") !=
           std::string::npos;
  }));
  if (std::filesystem::exists("/usr/bin/promtool")) {
    mega::testing::WriteFile(folder_ / "metrics", text);
    EXPECT_EQ(system(("promtool check metrics < " + (folder_ / "metrics")).c_str()), 0);
  }
  coordinator_.Order(StopOrder(absl::ZeroDuration()));
  ASSERT_TRUE(coordinator_.AwaitExits(1));
  const std::string after = Scrape(daemon_->metrics_address());
  EXPECT_THAT(after, AllOf(Not(HasSubstr("mega_rank_step{")), Not(HasSubstr("mega_rank_info{")),
                           HasSubstr("mega_rank_exits_total{cause=\"stopped\"} 1")));
}

// Case: the machine gave no thread for one more reader, and the worker ended with all its ranks.
TEST(LogStreams, AReaderForWhomThereIsNoThreadIsTold) {
  mega::testing::ScriptedCoordinator coordinator;
  LogStreams streams({coordinator.address()});
  v1::StreamLog request;
  request.set_job_uid(kJob);
  const auto ask = [&](const std::string& id) {
    request.set_stream_id(id);
    streams.Handle(request, absl::NotFoundError("no such log"));
    return coordinator.Await([&](const Heard& heard) { return heard.logs.contains(id); });
  };
  ASSERT_TRUE(ask("before"));
  request.set_stream_id("without");
  {
    const mega::testing::NoThreads none;
    streams.Handle(request, absl::NotFoundError("no such log"));
  }
  ASSERT_TRUE(coordinator.Await([](const Heard& heard) { return heard.logs.contains("without"); }));
  EXPECT_THAT(coordinator.heard().logs.at("without").front().error(),
              HasSubstr("cannot start a thread"));
  EXPECT_TRUE(ask("after"));
}

}  // namespace
}  // namespace mega::daemon
