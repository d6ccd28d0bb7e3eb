// megactl logs: what ranks wrote. Resumes by offset after a lost connection, goes on with the next
// attempt after a restart, ends when the job has.
#include <unistd.h>

#include <map>
#include <memory>
#include <set>

#include "absl/time/clock.h"
#include "base/command_line/command_line.h"
#include "base/standard_output.h"
#include "cli/client/errors.h"
#include "cli/commands/command.h"
#include "cli/commands/follow.h"
#include "cli/commands/line_prefixer.h"
#include "cli/spec/scalar.h"

namespace mega::cli {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(200);

struct Options {
  std::string handle;
  std::vector<int64_t> ranks;
  bool follow = false;
  int64_t attempt = 0;
  std::string tail;
  bool exit_status = false;
};

class LogReader {
 public:
  LogReader(Client& client, const Options& options) : client_(client), options_(options) {}

  absl::Status Run(const v1::Job& job) {
    request_.set_name(job.name());
    request_.set_follow(options_.follow);
    request_.set_attempt(options_.attempt);
    request_.mutable_ranks()->Add(options_.ranks.begin(), options_.ranks.end());
    const int64_t ranks = job.attempts().empty() ? 0 : job.attempts().rbegin()->plan().world_size();
    prefixer_.set_prefixed(options_.ranks.empty() ? ranks != 1 : options_.ranks.size() > 1);
    if (!options_.tail.empty()) {
      const auto tail = ParseInteger(options_.tail, "bytes");
      if (!tail.ok() || *tail < 1)
        return InvalidArgument("--tail '{}' is no size of 1 byte or more, such as 64Ki",
                               options_.tail);
      request_.set_tail_bytes(*tail);
    }
    while (true) {
      bool left_behind = false;
      const absl::Status status = Follow<v1::LogChunk>(
          [this] { return client_.StreamLogs(request_); },
          [this](const v1::LogChunk& chunk) { return Take(chunk); }, options_.follow,
          [&](const absl::Status& why) { return left_behind = IsLeftBehind(why); });
      if (!PrintStdout(prefixer_.Flush())) return absl::OkStatus();  // told at the end
      if (left_behind) {
        std::fprintf(stderr, "megactl: attempt %ld: %s; going on with the next attempt\n",
                     static_cast<long>(attempt_), Printable(std::string(status.message())).c_str());
      } else if (!status.ok()) {
        return status;
      }
      if (!options_.follow || options_.attempt != 0) return absl::OkStatus();
      MEGA_ASSIGN_OR_RETURN(const bool more, WaitForNextAttempt());
      if (!more) return absl::OkStatus();
    }
  }

 private:
  // False: nobody can read it.
  bool Take(const v1::LogChunk& chunk) {
    if (chunk.attempt() != attempt_) {
      attempt_ = chunk.attempt();
      request_.clear_offsets();
      // The offsets are of this attempt: after a lost connection "the newest" may be another.
      request_.set_attempt(attempt_);
    }
    request_.clear_tail_bytes();  // offsets say where to go on
    (*request_.mutable_offsets())[chunk.rank()] =
        chunk.offset() + static_cast<int64_t>(chunk.data().size());
    return PrintStdout(prefixer_.Add(chunk.rank(), chunk.data()));
  }

  // The rest of this attempt's log is on a node that is gone, and a later attempt writes already.
  bool IsLeftBehind(const absl::Status& status) {
    if (options_.attempt != 0 || ReasonOf(status) != "NODE_GONE") return false;
    const absl::StatusOr<v1::Job> job = client_.GetJob(request_.name());
    return job.ok() && NextAttempt(*job) != 0;
  }

  // The oldest attempt after the one shown that is still on record; 0: none.
  int64_t NextAttempt(const v1::Job& job) const {
    for (const v1::Attempt& attempt : job.attempts()) {
      if (attempt.number() > attempt_) return attempt.number();
    }
    return 0;
  }

  // The stream has ended: false when the job has too, true once it runs a later attempt.
  absl::StatusOr<bool> WaitForNextAttempt() {
    for (Pause pause;;) {
      const absl::StatusOr<v1::Job> job = client_.GetJob(request_.name());
      if (job.ok()) {
        if (const int64_t next = NextAttempt(*job); next != 0) {
          request_.clear_offsets();
          request_.set_attempt(next);
          return true;
        }
        if (IsFinal(job->phase())) return false;
        absl::SleepFor(kBetweenLooks);
        pause.Reset();
      } else if (!absl::IsUnavailable(job.status()) || !pause.Wait()) {
        return job.status();
      }
    }
  }

  Client& client_;
  const Options& options_;
  v1::StreamLogsRequest request_;
  LinePrefixer prefixer_;
  int64_t attempt_ = 0;
};

int Logs(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<v1::Job> job = client->GetJob(options.handle);
  if (!job.ok()) return Fail(job.status());
  if (const absl::Status status = LogReader(*client, options).Run(*job); !status.ok())
    return Fail(status);
  if (StandardOutputFailed()) return kExitOutputFailed;  // the job may go on for hours
  if (!options.exit_status) return kExitOk;
  job = client->GetJob(job->name());
  if (!job.ok()) return Fail(job.status());
  return ExitCodeOf(job->phase());
}

}  // namespace

void AddLogs(Command program, const Shell& shell) {
  Command command = program.AddCommand("logs", "Show what the ranks of a job wrote",
                                       "megactl logs -f shakespeare --rank 0,1");
  auto options = std::make_shared<Options>();
  AddJob(command, options->handle).Required();
  command.AddFlag("-f,--follow", options->follow, "Go on until the job ends");
  command.AddOption("--rank", options->ranks, "These ranks alone (default: all)")
      .Delimiter(',')
      .AtLeast(0)
      .OneWordEach()
      .TypeName("N,…");
  command.AddOption("--attempt", options->attempt, "Of this attempt (default: the newest)")
      .AtLeast(1)
      .TypeName("N");
  command.AddOption("--tail", options->tail, "Only the last bytes of each log: 64Ki")
      .TypeName("BYTES");
  command.AddFlag("--exit-status", options->exit_status, "End with the exit codes of wait");
  command.OnRun([&shell, options] { return Logs(shell, *options); });
}

}  // namespace mega::cli
