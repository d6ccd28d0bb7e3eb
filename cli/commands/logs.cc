// megactl logs: what ranks wrote. Resumes by offset after a lost connection, goes on with the next
// attempt after a restart, ends when the job has. A node that is away hides no other's logs.
#include <unistd.h>

#include <map>
#include <memory>
#include <utility>

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
// The log of a job that has not ended is asked for again after this, when its node was away.
constexpr absl::Duration kNodeMayReturn = absl::Seconds(1);

bool IsNodeGone(const absl::Status& status) { return ReasonOf(status) == "NODE_GONE"; }

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
    if (!job.attempts().empty()) newest_at_start_ = job.attempts().rbegin()->number();
    while (true) {
      const absl::Status status = Follow<v1::LogChunk>(
          [this] { return client_.StreamLogs(request_); },
          [this](const v1::LogChunk& chunk) { return Take(chunk); }, options_.follow, IsNodeGone);
      if (!PrintStdout(prefixer_.Flush())) return absl::OkStatus();  // told at the end
      const bool is_gone = IsNodeGone(status);
      if (!options_.follow || (!status.ok() && !is_gone)) return status;
      if (options_.attempt != 0 && !is_gone) return status;
      MEGA_ASSIGN_OR_RETURN(
          const Then then, WaitForNextAttempt(is_gone ? kNodeMayReturn : absl::InfiniteDuration()));
      if (then == Then::kEnd) return status;
      if (is_gone) Tell(status, then);
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

  enum class Then { kNextAttempt, kSameAttempt, kEnd };

  // That it is waited for, once for each attempt.
  void Tell(const absl::Status& gone, Then then) {
    const int64_t attempt = request_.attempt();
    if (then == Then::kSameAttempt && std::exchange(told_, attempt) == attempt) return;
    std::fprintf(stderr, "megactl: %s; %s\n", Printable(std::string(gone.message())).c_str(),
                 then == Then::kNextAttempt ? "going on with the next attempt" : "waiting for it");
  }

  // The oldest attempt after the one shown, or asked for in vain, that is still on record; 0: none.
  int64_t NextAttempt(const v1::Job& job) {
    if (request_.attempt() == 0) request_.set_attempt(newest_at_start_);
    for (const v1::Attempt& attempt : job.attempts()) {
      // It had not started at the start: the first was asked for.
      if (request_.attempt() == 0) request_.set_attempt(attempt.number());
      if (attempt.number() > request_.attempt()) return attempt.number();
    }
    return 0;
  }

  // The stream has ended: kEnd when the job has too, kNextAttempt once it runs a later one,
  // kSameAttempt after `patience` without either.
  absl::StatusOr<Then> WaitForNextAttempt(absl::Duration patience) {
    const absl::Time until = absl::Now() + patience;
    for (Pause pause;;) {
      const absl::StatusOr<v1::Job> job = client_.GetJob(request_.name());
      if (job.ok()) {
        if (const int64_t next = NextAttempt(*job); next != 0) {
          if (options_.attempt != 0) return Then::kEnd;
          request_.clear_offsets();
          request_.set_attempt(next);
          return Then::kNextAttempt;
        }
        if (IsFinal(job->phase())) return Then::kEnd;
        if (absl::Now() >= until) return Then::kSameAttempt;
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
  int64_t attempt_ = 0;          // of the newest chunk
  int64_t newest_at_start_ = 0;  // of the job's attempts; 0: it had none
  int64_t told_ = 0;             // the attempt whose node was last said to be waited for
};

int Logs(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  absl::StatusOr<v1::Job> job = client->GetJob(options.handle);
  if (!job.ok()) return Fail(job.status());
  if (const absl::Status status = LogReader(*client, options).Run(*job); !status.ok()) {
    const int code = Fail(status);
    // How the job ended does not hang on a log that is elsewhere.
    if (!options.exit_status || !IsNodeGone(status)) return code;
  }
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
