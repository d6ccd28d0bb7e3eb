#include <future>
#include <limits>
#include <thread>

#include "gmock/gmock.h"
#include "tests/coordinator/service/fake_worker.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

using ::testing::HasSubstr;
using Command = v1::Command;

// Bytes that differ everywhere, so that a lost or repeated one shows.
std::string Text(int64_t from, int64_t bytes) {
  std::string text;
  for (int64_t i = from; i < from + bytes; ++i) {
    text += static_cast<char>('a' + (i * 7 + i / 26) % 26);
  }
  return text;
}

v1::LogChunk Chunk(const v1::StreamLog& ask, int64_t offset, int64_t bytes, bool end) {
  v1::LogChunk chunk;
  chunk.set_stream_id(ask.stream_id());
  chunk.set_job_uid(ask.job_uid());
  chunk.set_attempt(ask.attempt());
  chunk.set_rank(ask.rank());
  chunk.set_offset(offset);
  chunk.set_data(Text(offset, bytes));
  chunk.set_end(end);
  return chunk;
}

class LogsTest : public ServiceTest {
 protected:
  void SetUp() override {
    StartCoordinator();
    worker_.Connect(address());
    MustSubmit(Request("talker", 1, 4));
    Command start;
    ASSERT_TRUE(worker_.AwaitCommand(Command::kStartRanks, &start));
    start_ = start.start_ranks();
  }

  struct Read {
    std::string text;
    grpc::Status status;
    bool contiguous = true;
  };
  Read ReadLogs(
      v1::StreamLogsRequest request, std::function<void()> between = [] {}) {
    request.set_name("talker");
    const auto context = Context();
    const auto reader = jobs_->StreamLogs(context.get(), request);
    Read read;
    int64_t next = request.offsets().contains(0) ? request.offsets().at(0) : -1;
    for (v1::LogChunk chunk; reader->Read(&chunk);) {
      if (next >= 0 && chunk.offset() != next) read.contiguous = false;
      next = chunk.offset() + std::ssize(chunk.data());
      read.text += chunk.data();
      between();
    }
    read.status = reader->Finish();
    return read;
  }
  v1::StreamLog Asked() {
    Command command;
    EXPECT_TRUE(worker_.AwaitCommand(Command::kStreamLog, &command));
    EXPECT_EQ(command.seq(), 0);
    return command.stream_log();
  }

  FakeWorker worker_{"w0", 1};
  v1::StartRanks start_;
};

TEST_F(LogsTest, BytesArriveExactlyAcrossABrokenWorkerStream) {
  v1::StreamLogsRequest request;
  request.set_follow(true);
  auto reader = std::async(std::launch::async, [&] { return ReadLogs(request); });
  const v1::StreamLog first = Asked();
  EXPECT_TRUE(first.follow());
  ASSERT_TRUE(worker_.PushLogs({Chunk(first, 0, 1000, false)}).ok());  // ends without `end`
  const v1::StreamLog second = Asked();
  EXPECT_EQ(second.offset(), 1000);
  EXPECT_NE(second.stream_id(), first.stream_id());
  // The worker repeats a little; the client must not see it twice.
  ASSERT_TRUE(
      worker_.PushLogs({Chunk(second, 900, 600, false), Chunk(second, 1500, 500, true)}).ok());
  const Read read = reader.get();
  EXPECT_TRUE(read.status.ok()) << read.status.error_message();
  EXPECT_EQ(read.text, Text(0, 2000));
}

// Case: `logs -f` asked for a rank whose order to start was still on its way; the worker knew no
// such rank, and the reader never heard of it again.
TEST_F(LogsTest, ARankThatItsWorkerDoesNotKnowYetIsAskedForAgain) {
  v1::StreamLogsRequest request;
  request.set_follow(true);
  auto reader = std::async(std::launch::async, [&] { return ReadLogs(request); });
  const v1::StreamLog early = Asked();
  ASSERT_TRUE(worker_.PushLogs({Chunk(early, 0, 0, true)}).ok());
  const v1::StreamLog again = Asked();
  EXPECT_NE(again.stream_id(), early.stream_id());
  EXPECT_EQ(again.offset(), 0);
  ASSERT_TRUE(worker_.PushLogs({Chunk(again, 0, 500, true)}).ok());
  const Read read = reader.get();
  EXPECT_TRUE(read.status.ok()) << read.status.error_message();
  EXPECT_EQ(read.text, Text(0, 500));
}

TEST_F(LogsTest, ARankThatHasEndedWithoutAWordIsNotAskedForAgain) {
  worker_.Exit(start_, 0);
  AwaitPhase("talker", v1::JOB_PHASE_SUCCEEDED);
  v1::StreamLogsRequest request;
  request.set_follow(true);
  auto reader = std::async(std::launch::async, [&] { return ReadLogs(request); });
  const v1::StreamLog ask = Asked();
  ASSERT_TRUE(worker_.PushLogs({Chunk(ask, 0, 0, true)}).ok());
  const Read read = reader.get();
  EXPECT_TRUE(read.status.ok()) << read.status.error_message();
  EXPECT_EQ(read.text, "");
}

TEST_F(LogsTest, ResumesFromTheClientsOffset) {
  v1::StreamLogsRequest request;
  (*request.mutable_offsets())[0] = 700;
  auto reader = std::async(std::launch::async, [&] { return ReadLogs(request); });
  const v1::StreamLog ask = Asked();
  EXPECT_EQ(ask.offset(), 700);
  ASSERT_TRUE(worker_.PushLogs({Chunk(ask, 700, 300, true)}).ok());
  EXPECT_EQ(reader.get().text, Text(700, 300));
}

TEST_F(LogsTest, AReaderThatComesLateHoldsTheWorkerBackAndLosesNothing) {
  constexpr int64_t kChunk = 256 << 10;
  constexpr int kChunks = 256;  // 64 MiB: far more than all buffers on the way hold
  v1::StreamLogsRequest request;
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  auto reader =
      std::async(std::launch::async, [&] { return ReadLogs(request, [&] { opened.wait(); }); });
  const v1::StreamLog ask = Asked();
  std::vector<v1::LogChunk> chunks;
  for (int i = 0; i < kChunks; ++i) {
    chunks.push_back(Chunk(ask, i * kChunk, kChunk, i == kChunks - 1));
  }
  auto pushed = std::async(std::launch::async, [&] { return worker_.PushLogs(chunks); });
  EXPECT_EQ(pushed.wait_for(std::chrono::milliseconds(500)), std::future_status::timeout);
  gate.set_value();
  EXPECT_TRUE(pushed.get().ok());
  const Read read = reader.get();
  EXPECT_TRUE(read.status.ok()) << read.status.error_message();
  EXPECT_TRUE(read.contiguous);
  EXPECT_EQ(read.text.size(), static_cast<size_t>(kChunk * kChunks));
  EXPECT_TRUE(read.text == Text(0, kChunk * kChunks));
}

TEST_F(LogsTest, WorkerIsToldWhenTheReaderLeaves) {
  v1::StreamLogsRequest request;
  request.set_name("talker");
  request.set_follow(true);
  const auto context = Context();
  const auto reader = jobs_->StreamLogs(context.get(), request);
  const v1::StreamLog ask = Asked();
  context->TryCancel();
  const v1::StreamLog cancel = Asked();
  EXPECT_TRUE(cancel.cancel());
  EXPECT_EQ(cancel.stream_id(), ask.stream_id());
  EXPECT_EQ(worker_.PushLogs({Chunk(ask, 0, 10, false)}).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(LogsTest, SaysWhichNodeIsGone) {
  worker_.Disconnect();
  const Read read = ReadLogs(v1::StreamLogsRequest());
  EXPECT_EQ(read.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(read.status.error_message(), HasSubstr("node 'w0'"));
  EXPECT_EQ(ErrorInfoOf(read.status).reason(), "NODE_GONE");
}

// Two ranks, each on a node of its own.
class LogsOfTwoNodesTest : public ServiceTest {
 protected:
  void SetUp() override {
    StartCoordinator();
    workers_[0].Connect(address());
    workers_[1].Connect(address());
    AwaitNode("w0");
    AwaitNode("w1");
    v1::SubmitJobRequest request = Request("talker", 2, 4);
    request.mutable_spec()->mutable_resources()->mutable_nodes()->set_desired(2);
    request.mutable_spec()->mutable_resources()->set_devices_per_node(1);
    request.mutable_spec()->mutable_checkpoint()->set_directory("/shared");
    MustSubmit(request);
    for (FakeWorker& worker : workers_) {
      Command start;
      ASSERT_TRUE(worker.AwaitCommand(Command::kStartRanks, &start));
      ranks_.push_back(start.start_ranks().ranks(0));
    }
  }
  struct Read {
    std::map<int64_t, std::string> texts;
    grpc::Status status;
  };
  std::future<Read> ReadLogs() {
    return std::async(std::launch::async, [this] {
      v1::StreamLogsRequest request;
      request.set_name("talker");
      const auto context = Context();
      const auto reader = jobs_->StreamLogs(context.get(), request);
      Read read;
      for (v1::LogChunk chunk; reader->Read(&chunk);) read.texts[chunk.rank()] += chunk.data();
      read.status = reader->Finish();
      return read;
    });
  }
  v1::StreamLog Asked(int worker) {
    Command command;
    EXPECT_TRUE(workers_[worker].AwaitCommand(Command::kStreamLog, &command));
    return command.stream_log();
  }

  FakeWorker workers_[2] = {{"w0", 1}, {"w1", 1}};
  std::vector<int64_t> ranks_;  // by worker
};

// Case: nothing of the ranks that could be asked was shown.
TEST_F(LogsOfTwoNodesTest, ANodeThatIsGoneHidesNoOthersLog) {
  for (const int gone : {1, 0}) {
    workers_[gone].Disconnect();
    auto reader = ReadLogs();
    const int there = 1 - gone;
    ASSERT_TRUE(workers_[there].PushLogs({Chunk(Asked(there), 0, 100, true)}).ok());
    const Read read = reader.get();
    EXPECT_THAT(read.texts,
                ::testing::UnorderedElementsAre(::testing::Pair(ranks_[there], Text(0, 100))));
    EXPECT_EQ(ErrorInfoOf(read.status).reason(), "NODE_GONE");
    EXPECT_THAT(read.status.error_message(), HasSubstr(fmt::format("rank {} is", ranks_[gone])));
    workers_[gone].Connect(address());
    ASSERT_TRUE(workers_[gone].AwaitDecisions());
  }
}

TEST_F(LogsOfTwoNodesTest, ALogThatCannotBeReadHidesNoOther) {
  auto reader = ReadLogs();
  const v1::StreamLog asked = Asked(0);
  v1::LogChunk failed = Chunk(asked, 0, 0, false);
  failed.set_error("Input/output error");
  ASSERT_TRUE(workers_[0].PushLogs({failed}).ok());
  EXPECT_EQ(Asked(0).stream_id(), asked.stream_id());  // its cancellation
  ASSERT_TRUE(workers_[1].PushLogs({Chunk(Asked(1), 0, 100, true)}).ok());
  const Read read = reader.get();
  EXPECT_THAT(read.texts,
              ::testing::UnorderedElementsAre(::testing::Pair(ranks_[1], Text(0, 100))));
  EXPECT_EQ(ErrorInfoOf(read.status).reason(), "LOG_UNREADABLE");
}

TEST_F(LogsTest, TheReaderIsToldWhyALogCannotBeRead) {
  auto reader = std::async(std::launch::async, [&] { return ReadLogs(v1::StreamLogsRequest()); });
  const v1::StreamLog ask = Asked();
  v1::LogChunk failed = Chunk(ask, 100, 0, false);
  failed.set_error("cannot read rank-0.log: Input/output error");
  ASSERT_TRUE(worker_.PushLogs({Chunk(ask, 0, 100, false), failed}).ok());
  const Read read = reader.get();
  EXPECT_EQ(read.text, Text(0, 100));
  EXPECT_EQ(read.status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(read.status.error_message(),
            "the log of rank 0 cannot be read on node 'w0': cannot read rank-0.log: Input/output "
            "error");
  EXPECT_EQ(ErrorInfoOf(read.status).reason(), "LOG_UNREADABLE");
}

// Case: an offset near the ends of its type ran over, and the reader was sent from a wrong place.
TEST_F(LogsTest, AnOffsetThatNoLogHasIsTheWorkersFault) {
  for (const int64_t offset : {std::numeric_limits<int64_t>::max() - 5, int64_t{-1},
                               std::numeric_limits<int64_t>::min()}) {
    v1::StreamLogsRequest request;
    (*request.mutable_offsets())[0] = 7;
    auto reader = std::async(std::launch::async, [&] { return ReadLogs(request); });
    const v1::StreamLog ask = Asked();
    v1::LogChunk chunk = Chunk(ask, 0, 10, false);
    chunk.set_offset(offset);
    ASSERT_TRUE(worker_.PushLogs({chunk}).ok());
    const Read read = reader.get();
    EXPECT_EQ(read.text, "") << offset;
    EXPECT_EQ(read.status.error_code(), grpc::StatusCode::INTERNAL) << offset;
    EXPECT_THAT(read.status.error_message(), HasSubstr("no log has such a one"));
    EXPECT_EQ(Asked().stream_id(), ask.stream_id());  // its cancellation
  }
}

// Case: each of a job's ranks was looked for among as many as the client liked, under the lock that
// all streams wait for.
TEST_F(LogsTest, MoreRanksThanThereAreAreRefused) {
  v1::StreamLogsRequest request;
  request.add_ranks(0);
  request.add_ranks(0);
  const grpc::Status status = ReadLogs(request).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ErrorInfoOf(status).reason(), "RANKS_INVALID");
  EXPECT_THAT(status.error_message(), HasSubstr("2 ranks are named, and attempt 1"));
  EXPECT_THAT(status.error_message(), HasSubstr("none for all"));
  request.set_ranks(1, 99);
  const grpc::Status unknown = ReadLogs(request).status;
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(unknown.error_message(), HasSubstr("has ranks 0 to 0, not 99"));
}

TEST_F(LogsTest, APieceThatIsTooLargeIsRefused) {
  v1::LogChunk chunk;
  chunk.set_stream_id("any");
  chunk.set_data(std::string(2 << 20, 'x'));
  const grpc::Status status = worker_.PushLogs({chunk});
  EXPECT_EQ(ErrorInfoOf(status).reason(), "LOG_CHUNK_TOO_LARGE");
  EXPECT_THAT(status.error_message(), HasSubstr("may have 1048576"));
}

TEST_F(LogsTest, UnknownRankAndAttemptAreRefused) {
  v1::StreamLogsRequest request;
  request.add_ranks(7);
  EXPECT_EQ(ReadLogs(request).status.error_code(), grpc::StatusCode::NOT_FOUND);
  request.clear_ranks();
  request.set_attempt(9);
  EXPECT_EQ(ReadLogs(request).status.error_code(), grpc::StatusCode::NOT_FOUND);
}

// Case: it was ignored, and the reader took the whole log for what was written since.
TEST_F(LogsTest, SinceIsRefusedByName) {
  v1::StreamLogsRequest request;
  request.mutable_since()->set_seconds(1);
  const grpc::Status status = ReadLogs(request).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ErrorInfoOf(status).reason(), "SINCE_UNSUPPORTED");
  EXPECT_EQ(BadRequestOf(status).field_violations(0).field(), "since");
  EXPECT_THAT(status.error_message(), HasSubstr("tail_bytes"));
}

TEST_F(LogsTest, JobThatHasNotStartedSaysSo) {
  MustSubmit(Request("waiting", 1));
  v1::StreamLogsRequest request;
  request.set_name("waiting");
  const auto context = Context();
  const auto reader = jobs_->StreamLogs(context.get(), request);
  v1::LogChunk chunk;
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_EQ(ErrorInfoOf(reader->Finish()).reason(), "NOT_STARTED");
}

}  // namespace
}  // namespace mega::service
