// JobService.StreamLogs: asks the workers that hold the ranks for their logs and passes on what
// they push, by offset, so that a broken connection on either side costs no byte and repeats none.
// Ends when the ranks have ended and all was sent. A rank whose log cannot be had holds up no
// other: the stream ends with the reason once the others have ended.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "base/utf8.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/service/failed_call.h"
#include "coordinator/service/job_names.h"
#include "coordinator/service/pull_stream.h"
#include "coordinator/service/rpc/rpcs.h"
#include "coordinator/service/rpc_status.h"
#include "coordinator/service/stream_handle.h"

namespace mega::service {
namespace {

// A worker that was there may come back; one that is gone for longer has its reader told.
constexpr absl::Duration kNodeAway = absl::Seconds(30);
// Between two requests for the same rank's log: a worker that breaks at once is not stormed.
constexpr absl::Duration kAskAgain = absl::Seconds(1);
constexpr int64_t kFarthest = std::numeric_limits<int64_t>::max();
// Of a worker's words in an error.
constexpr size_t kErrorBytes = 1 << 10;

class LogStream final : public PullStream<v1::LogChunk> {
 public:
  using Handle = StreamHandle<LogStream>;

  LogStream(const Shell& shell, const v1::Job& job, const v1::StreamLogsRequest& request)
      : shell_(shell),
        uid_(job.uid()),
        request_(request),
        handle_(std::make_shared<Handle>(this)),
        buffer_(shell.logs.NewBuffer(
            [handle = handle_] { handle->With([](LogStream& stream) { stream.Wake(); }); })) {
    Open(shell.reads, uid_);
  }

 private:
  struct Source {
    std::string node;
    int64_t offset = 0;
    bool has_offset = false;  // after the first byte or an offset of the client's
    bool ended = false;
    std::string stream_id;  // under which the worker was asked; empty: it must be asked
    int64_t session = 0;    // over which
    absl::Duration asked;
    absl::Duration away_since = absl::InfiniteDuration();
  };

  Next Pull(v1::LogChunk& out, grpc::Status& end) override {
    if (attempt_ == 0) {
      bool wait = false;
      end = ChooseAttempt(&wait);
      if (wait) return Next::kWait;
      if (!end.ok()) return Next::kEnd;
    }
    if (buffer_->cut()) {
      end = Overloaded("the log came faster than it was read; resume from the offset you have",
                       absl::Seconds(1));
      return Next::kEnd;
    }
    LogBuffer::Item item;
    while (buffer_->Pop(item)) {
      if (std::string why = WhatIsWrong(item.chunk); !why.empty()) {
        GiveUp(item.chunk, why);
        continue;
      }
      if (Accept(item, out)) return Next::kWrite;
    }
    bool all_ended = true;
    grpc::Status gone;
    for (auto& [rank, source] : sources_) {
      if (source.ended) continue;
      if (Ask(rank, source)) {
        all_ended = false;
      } else if (gone.ok()) {
        gone = NodeGone(rank, source);
      }
    }
    if (!all_ended) return Next::kWait;
    end = unreadable_.ok() ? gone : unreadable_;
    return Next::kEnd;
  }

  // Which attempt and ranks. A follower waits for a job that has not started.
  grpc::Status ChooseAttempt(bool* wait) {
    const auto job = shell_.reads.JobRecord(uid_);
    if (job == nullptr) return JobGone(uid_);
    if (job->attempts().empty()) {
      *wait = request_.follow() && !core::IsTerminal(job->phase());
      return RpcError(
          absl::StatusCode::kFailedPrecondition, "NOT_STARTED",
          fmt::format("job '{}' has not started, so it has no log: {}", uid_, job->reason()));
    }
    const v1::Attempt* attempt = &core::NewestAttempt(*job);
    if (request_.attempt() != 0) {
      const auto it =
          std::find_if(job->attempts().begin(), job->attempts().end(),
                       [&](const v1::Attempt& a) { return a.number() == request_.attempt(); });
      if (it == job->attempts().end()) {
        return ResourceNotFound("attempt", std::to_string(request_.attempt()),
                                fmt::format("job '{}' has no attempt {}; its newest is {}", uid_,
                                            request_.attempt(), attempt->number()));
      }
      attempt = &*it;
    }
    const int most = attempt->ranks_size();
    // Not all that a client liked to name: beyond `most` there are too many, or one twice.
    for (int i = 0; i < std::min(request_.ranks_size(), most + 1); ++i) {
      const int64_t rank = request_.ranks(i);
      if (rank >= 0 && rank < most) continue;
      return ResourceNotFound("rank", std::to_string(rank),
                              fmt::format("attempt {} of job '{}' has ranks 0 to {}, not {}",
                                          attempt->number(), uid_, most - 1, rank));
    }
    if (request_.ranks_size() > most) {
      return FieldInvalid("RANKS_INVALID", "ranks",
                          fmt::format("{} ranks are named, and attempt {} of job '{}' has {}; name "
                                      "each once, or none for all",
                                      request_.ranks_size(), attempt->number(), uid_, most));
    }
    const std::set<int64_t> asked(request_.ranks().begin(), request_.ranks().end());
    for (const v1::RankState& rank : attempt->ranks()) {
      if (!asked.empty() && !asked.contains(rank.rank())) continue;
      Source& source = sources_[rank.rank()];
      source.node = rank.node();
      if (const auto it = request_.offsets().find(rank.rank()); it != request_.offsets().end()) {
        source.offset = std::max<int64_t>(it->second, 0);
        source.has_offset = true;
      }
    }
    attempt_ = attempt->number();
    return grpc::Status::OK;
  }

  // False: the rank's node is gone. It is looked for again while the stream lasts.
  bool Ask(int64_t rank, Source& source) {
    const absl::Duration now = shell_.clock.BootNow();
    const int64_t session = shell_.sessions.SessionOf(source.node);
    if (session == 0) {
      const bool was_there = source.session != 0;
      source.away_since = std::min(source.away_since, now);
      return was_there && request_.follow() && now - source.away_since < kNodeAway;
    }
    source.away_since = absl::InfiniteDuration();
    if (!source.stream_id.empty() && source.session == session) return true;
    if (source.session == session && now - source.asked < kAskAgain) return true;
    Forget(source);
    source.stream_id = shell_.logs.Open(buffer_);
    source.session = session;
    source.asked = now;
    by_id_[source.stream_id] = rank;
    v1::CoordinatorMessage message;
    v1::StreamLog& ask = *message.mutable_command()->mutable_stream_log();
    ask.set_stream_id(source.stream_id);
    ask.set_job_uid(uid_);
    ask.set_attempt(attempt_);
    ask.set_rank(rank);
    ask.set_offset(source.offset);
    ask.set_follow(request_.follow());
    if (!source.has_offset) ask.set_tail_bytes(request_.tail_bytes());
    shell_.sessions.Send(session, std::move(message));
    return true;
  }

  static grpc::Status NodeGone(int64_t rank, const Source& source) {
    return RpcError(absl::StatusCode::kUnavailable, "NODE_GONE",
                    fmt::format("the log of rank {} is on node '{}', which is not connected; start "
                                "its worker, or read the file there",
                                rank, source.node),
                    {{"node", source.node}, {"rank", std::to_string(rank)}});
  }

  // Its worker need send no more, and what it sends after it was told so is refused.
  void Cancel(Source& source) {
    if (source.stream_id.empty()) return;
    v1::CoordinatorMessage message;
    v1::StreamLog& cancel = *message.mutable_command()->mutable_stream_log();
    cancel.set_stream_id(source.stream_id);
    cancel.set_job_uid(uid_);
    cancel.set_cancel(true);
    Forget(source);
    shell_.sessions.Send(source.session, std::move(message));
  }

  void Forget(Source& source) {
    if (source.stream_id.empty()) return;
    shell_.logs.Close(source.stream_id);
    by_id_.erase(source.stream_id);
    source.stream_id.clear();
  }

  // True: `out` is what the client must get.
  bool Accept(LogBuffer::Item& item, v1::LogChunk& out) {
    const auto id = by_id_.find(item.chunk.stream_id());
    if (id == by_id_.end()) return false;  // of a request that was replaced
    const int64_t rank = id->second;
    Source& source = sources_[rank];
    if (item.broken) {
      Forget(source);
      return false;
    }
    out = std::move(item.chunk);
    out.clear_stream_id();
    out.set_job_uid(uid_);
    out.set_attempt(attempt_);
    out.set_rank(rank);
    // A worker that was asked before the order to start reached it has no log yet and says "end".
    if (out.end() && out.data().empty() && request_.follow() && !source.has_offset &&
        MayStillStart(rank)) {
      Forget(source);  // asked again in a moment
      return false;
    }
    const int64_t bytes = std::ssize(out.data());
    if (source.has_offset && out.offset() < source.offset) {
      const int64_t seen = std::min<int64_t>(source.offset - out.offset(), bytes);
      out.mutable_data()->erase(0, seen);
      out.set_offset(out.offset() + seen);
    }
    if (!out.data().empty()) {
      source.offset = out.offset() + std::ssize(out.data());
      source.has_offset = true;
    }
    if (out.end()) {
      source.ended = true;
      Forget(source);
    }
    return !out.data().empty() || out.end();
  }

  bool MayStillStart(int64_t rank) const {
    const auto job = shell_.reads.JobRecord(uid_);
    if (job == nullptr || core::IsTerminal(job->phase())) return false;
    for (const v1::Attempt& attempt : job->attempts()) {
      if (attempt.number() != attempt_) continue;
      return attempt.state() != v1::ATTEMPT_STATE_ENDED && rank < attempt.ranks_size() &&
             core::MayRun(attempt.ranks(static_cast<int>(rank)));
    }
    return false;
  }

  // The worker's own words, or ours about its numbers. Empty: nothing.
  static std::string WhatIsWrong(const v1::LogChunk& chunk) {
    if (!chunk.error().empty()) return CutUtf8(chunk.error(), kErrorBytes);
    const int64_t bytes = std::ssize(chunk.data());
    if (chunk.offset() >= 0 && chunk.offset() <= kFarthest - bytes) return "";
    return fmt::format("its worker sent {} bytes of it from offset {}, and no log has such a one",
                       bytes, chunk.offset());
  }

  // The worker cannot give this log, and asking again would not help.
  void GiveUp(const v1::LogChunk& chunk, const std::string& why) {
    const auto id = by_id_.find(chunk.stream_id());
    if (id == by_id_.end()) return;  // of a request that was replaced
    const int64_t rank = id->second;
    Source& source = sources_[rank];
    source.ended = true;
    Cancel(source);
    if (!unreadable_.ok()) return;
    unreadable_ = RpcError(
        absl::StatusCode::kInternal, "LOG_UNREADABLE",
        fmt::format("the log of rank {} cannot be read on node '{}': {}", rank, source.node, why),
        {{"node", source.node}, {"rank", std::to_string(rank)}});
  }

  void Closed() override {
    handle_->Detach();
    buffer_->Shut();
    for (auto& [rank, source] : sources_) Cancel(source);
  }

  const Shell shell_;
  const core::JobUid uid_;
  const v1::StreamLogsRequest request_;
  const std::shared_ptr<Handle> handle_;
  const std::shared_ptr<LogBuffer> buffer_;
  int64_t attempt_ = 0;                // 0: not chosen yet
  std::map<int64_t, Source> sources_;  // by rank
  std::map<std::string, int64_t> by_id_;
  grpc::Status unreadable_;  // the first log that its worker could not give
};

}  // namespace

grpc::ServerWriteReactor<v1::LogChunk>* StreamLogs(const Shell& shell, const Caller& caller,
                                                   const v1::StreamLogsRequest& request) {
  if (request.has_since()) {
    return new FailedStream<v1::LogChunk>(
        FieldInvalid("SINCE_UNSUPPORTED", "since",
                     "since cannot be carried out: the lines of a log have no times; leave it out, "
                     "or begin by tail_bytes or offsets"));
  }
  std::shared_ptr<const v1::Job> job;
  if (grpc::Status status = FindJob(shell.reads, caller, request.name(), &job); !status.ok()) {
    return new FailedStream<v1::LogChunk>(std::move(status));
  }
  return new LogStream(shell, *job, request);
}

}  // namespace mega::service
