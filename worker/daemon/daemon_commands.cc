// How a worker takes the coordinator's commands: in their order, once each, and on disk first.
#include <utility>
#include <vector>

#include "base/log.h"
#include "worker/daemon/daemon.h"
#include "worker/daemon/run_paths.h"

namespace mega::daemon {
namespace {

constexpr absl::Duration kPersistRetry = absl::Seconds(1);

}  // namespace

void Daemon::HandleCommand(v1::Command command, int64_t generation, int64_t hello) {
  if (command.has_stream_log()) {  // changes nothing, so it need not be durable
    StreamLog(command.stream_log());
    if (command.seq() == 0) return;
  }
  // Ending ranks is right at any time, and a full disk must not keep them alive.
  if (command.has_stop_ranks()) {
    WithdrawStarts(command.stop_ranks());
    ranks_->Stop(command.stop_ranks());
  }
  if (Passes(command, hello)) return;
  if (ledger_->Accept(command, generation)) {
    commands_.push_back(std::move(command));
    FlushSoon();
  } else if (command.seq() <= ledger_->durable_seq()) {
    Ack(command);
  }
}

// A rank needs a lease. Without one the order stays unacked: it comes again after the next hello,
// or is withdrawn. As a command that is accepted settles all before it, so does what follows it in
// this session, unless it is the stop that ends it for good.
bool Daemon::Passes(const v1::Command& command, int64_t hello) {
  if (hello != passed_after_) passed_.clear();
  passed_after_ = hello;
  if (command.has_stop_ranks()) {
    const v1::StopRanks& stop = command.stop_ranks();
    std::erase(passed_, Passed{stop.job_uid(), stop.epoch()});
  }
  const bool needs_lease = command.has_start_ranks() && command.seq() > ledger_->durable_seq();
  if (needs_lease && !session_->MayRun()) {
    passed_.push_back({command.start_ranks().job_uid(), command.start_ranks().epoch()});
    session_->Redial();
    return true;
  }
  if (passed_.empty()) return false;
  passed_.push_back({});  // nothing ends it but the next hello
  return true;
}

void Daemon::Ack(const v1::Command& command) {
  v1::WorkerMessage ack;
  ack.mutable_command_ack()->set_seq(command.seq());
  session_->Send(std::move(ack));
}

// Starts that wait for the disk; what is left of them is to be acked.
void Daemon::WithdrawStarts(const v1::StopRanks& order) {
  for (v1::Command& waiting : commands_) {
    const v1::StartRanks& start = waiting.start_ranks();
    if (!waiting.has_start_ranks() || start.job_uid() != order.job_uid() ||
        start.epoch() != order.epoch()) {
      continue;
    }
    ranks_->Withdraw(start, order.reason());
    waiting.clear_start_ranks();
  }
}

// An order to remove a checkpoint is acked long before that is done; it has a file of its own.
bool Daemon::KeepRemovals() {
  std::vector<v1::DeleteCheckpoint> orders;
  for (const v1::Command& command : commands_) {
    if (command.has_delete_checkpoint()) orders.push_back(command.delete_checkpoint());
  }
  if (orders.empty()) return true;
  const absl::Status kept = removals_->Keep(orders);
  if (kept.ok()) return true;
  log::Error("removals.jsonl cannot be written: commands wait; free the disk of the state folder",
             {{"commands", std::ssize(commands_)}, {"why", std::string(kept.message())}});
  return false;
}

// Those that have arrived meanwhile are written with it: the disk takes a few writes a second, and
// a job may save more often than that.
void Daemon::FlushSoon() {
  if (std::exchange(is_flush_posted_, true)) return;
  loop_.Post([this] {
    is_flush_posted_ = false;
    FlushCommands();
  });
}

void Daemon::FlushCommands() {
  if (commands_.empty()) return;
  if (!KeepRemovals() || !Persist().ok()) {
    if (retrying_) return;
    retrying_ = true;
    loop_.PostAfter(kPersistRetry, [this] {
      retrying_ = false;
      FlushCommands();
    });
    return;
  }
  std::deque<v1::Command> durable;
  durable.swap(commands_);
  for (const v1::Command& command : durable) {
    ledger_->SetDurable(command.seq());
    Ack(command);
    CarryOut(command);
  }
}

void Daemon::CarryOut(const v1::Command& command) {
  switch (command.kind_case()) {
    case v1::Command::kStartRanks:
      if (probes_) probes_->Watch(command.start_ranks().spec().checkpoint().directory());
      ranks_->Start(command.start_ranks());
      break;
    case v1::Command::kConnectRanks:
      ranks_->Connect(command.connect_ranks());
      break;
    case v1::Command::kCheckpointCommitted:
      ranks_->Committed(command.checkpoint_committed());
      break;
    case v1::Command::kCheckpointRejected:
      ranks_->Rejected(command.checkpoint_rejected());
      break;
    case v1::Command::kDeleteCheckpoint:
      removals_->CarryOut();
      break;
    case v1::Command::kSaveCheckpoint:
      ranks_->Save(command.save_checkpoint());
      break;
    case v1::Command::kRunPreflight:  // of later releases
    case v1::Command::kStopRanks:     // done on arrival
    case v1::Command::kStreamLog:
    case v1::Command::KIND_NOT_SET:
      break;
  }
}

void Daemon::StreamLog(const v1::StreamLog& request) {
  if (request.has_since()) {
    return log_streams_->Handle(
        request, InvalidArgument("since cannot be carried out: the lines of a log have no times; "
                                 "ask by offset or tail_bytes"));
  }
  if (auto log = ranks_->FindLog(request.job_uid(), request.attempt(), request.rank())) {
    return log_streams_->Handle(request, std::move(log));
  }
  absl::StatusOr<std::shared_ptr<RankLog>> ended = absl::NotFoundError("no such job here");
  if (IsPlainName(request.job_uid())) {
    ended = RankLog::Open(
        LogPath(state_dir_->path(), request.job_uid(), request.attempt(), request.rank()),
        options_.log,
        /*create=*/false);
  }
  log_streams_->Handle(request, std::move(ended));
}

}  // namespace mega::daemon
