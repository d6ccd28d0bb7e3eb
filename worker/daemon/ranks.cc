#include "worker/daemon/ranks.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/printable.h"
#include "worker/daemon/checkpoint_report.h"
#include "worker/daemon/engine_version.h"
#include "worker/daemon/last_words.h"
#include "worker/daemon/run_paths.h"

namespace mega::daemon {
namespace {

namespace fs = std::filesystem;

// How long an ended process may keep us waiting for the end of its stream and pipes: a descendant
// of it may hold them open.
constexpr absl::Duration kEndOfWords = absl::Milliseconds(250);
// How long its last step reports may hold its exit back while the coordinator is there.
constexpr absl::Duration kEndOfReports = absl::Milliseconds(300);
constexpr absl::Duration kReportPoll = absl::Milliseconds(5);
constexpr absl::Duration kOutagePoll = absl::Milliseconds(100);
constexpr absl::Duration kTellGivenUpEvery = absl::Minutes(1);
// A job that crashes over and over must not fill the disk with its logs.
constexpr int64_t kAttemptsWithLogs = 8;

}  // namespace

// ---- start

void Ranks::Start(const v1::StartRanks& order) {
  std::vector<RankKey> started;
  for (const int64_t number : order.ranks()) {
    const RankKey key{order.job_uid(), order.attempt(), order.epoch(), number};
    if (ranks_.contains(key)) continue;
    Rank rank;
    const absl::Status status = StartOne(order, key, rank);
    ranks_[key] = std::move(rank);
    if (status.ok()) {
      started.push_back(key);
    } else {
      EndWithoutProcess(key, status);
    }
  }
  // Every process is on disk before its first instruction, so that the next incarnation finds it.
  const absl::Status recorded =
      started.empty()
          ? absl::OkStatus()
          : Annotate(parts_.persist(),
                     "the rank was not started because the worker cannot write down its "
                     "pid; free the disk of its state folder");
  for (const RankKey& key : started) {
    const absl::Status status =
        recorded.ok() ? parts_.supervisor.Release(key, parts_.may_run) : recorded;
    if (!status.ok()) ranks_[key].failure = status;
    if (!recorded.ok()) parts_.supervisor.Stop(key, absl::ZeroDuration());
  }
}

absl::Status Ranks::TakeDevice(const v1::StartRanks& order, const RankKey& key, Rank& rank) const {
  if (!refusing_.empty()) return FailedPrecondition("{}", refusing_);
  if (key.rank < 0 || key.rank >= order.plan().ranks_size()) {
    return InvalidArgument("rank {} is not in its plan of {} ranks", key.rank,
                           order.plan().ranks_size());
  }
  const int64_t device = order.plan().ranks(static_cast<int>(key.rank)).device();
  if (device < 0 || device >= static_cast<int64_t>(options_.devices.size())) {
    return InvalidArgument("the plan puts rank {} on device {} but this node has {}; plan again",
                           key.rank, device, options_.devices.size());
  }
  for (const auto& [other, taken] : ranks_) {
    if (taken.device == device && !taken.exit) {
      return FailedPrecondition("device {} is still taken by rank {}", device, other.Text());
    }
  }
  rank.device = device;
  return absl::OkStatus();
}

absl::Status Ranks::StartOne(const v1::StartRanks& order, const RankKey& key, Rank& rank) {
  MEGA_RETURN_IF_ERROR(TakeDevice(order, key, rank));
  MEGA_ASSIGN_OR_RETURN(const std::string directory, parts_.state_dir.RunDirectory(key.job_uid));
  PruneLogs(directory, key.attempt);
  MEGA_ASSIGN_OR_RETURN(
      rank.log, RankLog::Open(LogPath(parts_.state_dir.path(), key.job_uid, key.attempt, key.rank),
                              options_.log, /*create=*/true));
  const v1::Device& device = options_.devices[static_cast<size_t>(rank.device)];
  const int64_t threads =
      order.plan().threads_per_device() > 0 ? order.plan().threads_per_device() : device.threads();
  MEGA_ASSIGN_OR_RETURN(
      std::unique_ptr<Process> process,
      Process::Fork(
          {.argv = {options_.engine, "train", "--socket", parts_.trainer.socket(), "--job",
                    key.job_uid, "--attempt", fmt::format("{}", key.attempt), "--epoch",
                    fmt::format("{}", key.epoch), "--rank", fmt::format("{}", key.rank)},
           .environment = EngineEnvironment(threads),
           .directory = directory}));
  TrainerService::Expected expected{.pid = process->pid()};
  *expected.start.mutable_rank() = key.ToProto();
  *expected.start.mutable_spec() = order.spec();
  *expected.start.mutable_plan() = order.plan();
  if (order.has_load()) *expected.start.mutable_load() = order.load();
  expected.start.set_job_name(order.job_name());
  expected.start.set_run_directory(directory);
  expected.start.set_listen_host(options_.listen_host);
  parts_.trainer.Expect(key, std::move(expected));
  parts_.ledger.SetProcess(key, process->pid(), process->start_time_ticks());
  parts_.capture.Add(key, rank.log, process->TakeStdout(), process->TakeStderr());
  parts_.exporter.RankStarted(key, order.job_name());
  log::Info("rank starts", {{"rank", key.Text()},
                            {"training_job", order.job_name()},
                            {"pid", process->pid()},
                            {"device", rank.device},
                            {"threads", threads}});
  parts_.supervisor.Add(key, std::move(process));
  return absl::OkStatus();
}

void Ranks::EndWithoutProcess(const RankKey& key, const absl::Status& why) {
  log::Warn("rank was not started", {{"rank", key.Text()}, {"why", std::string(why.message())}});
  Rank& rank = ranks_[key];
  rank.failure = why;
  rank.log_ended = true;
  rank.exit = ProcessExit{.code = 127};
  rank.exited_at = parts_.clock.BootNow();
  CheckEnd(key);
}

void Ranks::Withdraw(const v1::StartRanks& order, const std::string& reason) {
  for (const int64_t number : order.ranks()) {
    const RankKey key{order.job_uid(), order.attempt(), order.epoch(), number};
    if (ranks_.contains(key)) continue;
    ranks_[key].by_worker = true;
    EndWithoutProcess(
        key, absl::CancelledError(fmt::format("stopped before it was started: {}", reason)));
  }
}

void Ranks::PruneLogs(const std::string& run_directory, int64_t attempt) const {
  const auto entries = ListFolder(run_directory);
  if (!entries.ok()) return;  // what this start needs of the folder will say so
  std::error_code ignored;
  for (const fs::directory_entry& entry : *entries) {
    const std::string name = entry.path().filename().string();
    const size_t dash = name.find("-r");
    int64_t number = 0;
    if (name.starts_with("a") && dash != std::string::npos &&
        name.find(".log", dash) != std::string::npos &&
        absl::SimpleAtoi(name.substr(1, dash - 1), &number) &&
        number <= attempt - kAttemptsWithLogs) {
      fs::remove(entry.path(), ignored);
    }
  }
}

// ---- life

void Ranks::OnEngineMessage(const RankKey& key, v1::EngineMessage message) {
  const auto it = ranks_.find(key);
  if (it == ranks_.end()) return;
  v1::WorkerMessage out;
  switch (message.kind_case()) {
    case v1::EngineMessage::kAttached:
      it->second.attached = true;
      return;
    case v1::EngineMessage::kReady:
      *out.mutable_rank_ready() = std::move(*message.mutable_ready());
      *out.mutable_rank_ready()->mutable_rank() = key.ToProto();
      parts_.ledger.Ready(key, out.rank_ready().address());
      break;
    case v1::EngineMessage::kCheckpointPart: {
      const int64_t step = message.checkpoint_part().step();
      out = CheckpointReport(key, std::move(*message.mutable_checkpoint_part()));
      Owe(key, step, out);
      break;
    }
    case v1::EngineMessage::kCheckpointFailed: {
      v1::CheckpointFailed& failed = *out.mutable_checkpoint_failed();
      failed = std::move(*message.mutable_checkpoint_failed());
      *failed.mutable_rank() = key.ToProto();
      log::Warn(
          "a checkpoint failed",
          {{"rank", key.Text()}, {"step", failed.step()}, {"why", std::string(failed.message())}});
      Owe(key, failed.step(), out);
      break;
    }
    case v1::EngineMessage::kFinished:
      it->second.finished = std::move(*message.mutable_finished());
      return;
    case v1::EngineMessage::kProgress:  // taken before the loop
    case v1::EngineMessage::kStep:      // likewise
    case v1::EngineMessage::KIND_NOT_SET:
      return;
  }
  parts_.send(std::move(out));
}

void Ranks::Owe(const RankKey& key, int64_t step, const v1::WorkerMessage& message) {
  given_up_ += parts_.ledger.Owe(key, step, message);
  const absl::Duration now = parts_.clock.BootNow();
  if (given_up_ == 0 || now < told_given_up_ + kTellGivenUpEvery) return;
  log::Warn("checkpoints wait for their commits; the oldest parts will not be told again",
            {{"rank", key.Text()}, {"step", step}, {"parts", std::exchange(given_up_, 0)}});
  told_given_up_ = now;
}

void Ranks::Connect(const v1::ConnectRanks& order) {
  v1::TrainerMessage message;
  *message.mutable_connect()->mutable_addresses() = order.addresses();
  parts_.trainer.SendToAttempt(order.job_uid(), order.epoch(), message);
  parts_.ledger.Connected(order.job_uid(), order.epoch());
}

void Ranks::Committed(const v1::CheckpointCommitted& commit) {
  v1::TrainerMessage message;
  *message.mutable_checkpoint_committed() = commit;
  parts_.trainer.SendToAttempt(commit.job_uid(), commit.epoch(), message);
  parts_.ledger.Committed(commit.job_uid(), commit.epoch(), commit.manifest().step());
}

void Ranks::Rejected(const v1::CheckpointRejected& rejected) {
  v1::TrainerMessage message;
  *message.mutable_checkpoint_rejected() = rejected;
  parts_.trainer.SendToAttempt(rejected.job_uid(), rejected.epoch(), message);
  parts_.ledger.Rejected(rejected.job_uid(), rejected.epoch(), rejected.step());
}

// A rank that is not attached yet has done no step; its peers, once asked, make it save with them.
void Ranks::Save(const v1::SaveCheckpoint& order) {
  v1::TrainerMessage message;
  message.mutable_save()->set_cause(order.cause());
  parts_.trainer.SendToAttempt(order.job_uid(), order.epoch(), message);
}

void Ranks::Stop(const v1::StopRanks& order) {
  const absl::Duration grace = FromProto(order.grace());
  for (auto& [key, rank] : ranks_) {
    if (key.job_uid != order.job_uid() || key.epoch != order.epoch() || rank.exit) continue;
    if (rank.stop_reason.empty()) rank.stop_reason = order.reason();
    v1::TrainerMessage message;
    message.mutable_stop()->set_reason(order.reason());
    parts_.trainer.Send(key, message);
    parts_.supervisor.Stop(key, grace);
  }
}

void Ranks::StopAll(absl::Duration grace, const std::string& reason) {
  refusing_ = reason;
  for (auto& [key, rank] : ranks_) {
    if (rank.exit) continue;
    if (rank.stop_reason.empty()) rank.stop_reason = reason;
    v1::TrainerMessage message;
    message.mutable_stop()->set_reason(reason);
    parts_.trainer.Send(key, message);
    parts_.supervisor.Stop(key, grace);
  }
}

// ---- end

void Ranks::OnRefused(const RankKey& key, const absl::Status& why) {
  const auto it = ranks_.find(key);
  if (it == ranks_.end() || it->second.exit) return;
  it->second.failure = why;
  parts_.supervisor.Stop(key, absl::ZeroDuration());
}

void Ranks::OnDetached(const RankKey& key) {
  const auto it = ranks_.find(key);
  if (it == ranks_.end()) return;
  it->second.attached = false;
  CheckEnd(key);
}

void Ranks::OnLogEnd(const RankKey& key) {
  const auto it = ranks_.find(key);
  if (it == ranks_.end()) return;
  it->second.log_ended = true;
  CheckEnd(key);
}

void Ranks::OnProcessExit(const RankKey& key, ProcessExit exit, bool by_worker) {
  const auto it = ranks_.find(key);
  if (it == ranks_.end()) return;
  it->second.exit = exit;
  it->second.by_worker = by_worker;
  it->second.exited_at = parts_.clock.BootNow();
  CheckEnd(key);
  parts_.loop.PostAfter(kEndOfWords, [this, key] { CheckEnd(key); });
}

void Ranks::CheckEnd(const RankKey& key) {
  const auto it = ranks_.find(key);
  if (it == ranks_.end()) return;
  Rank& rank = it->second;
  if (!rank.exit || rank.complete) return;
  const bool late = parts_.clock.BootNow() - rank.exited_at >= kEndOfWords;
  if (!late && (rank.attached || !rank.log_ended)) return;
  rank.complete = true;
  parts_.capture.Forget(key);
  if (rank.log) rank.log->Close();
  parts_.trainer.Forget(key);
  parts_.reports.Flush();
  ReportEnds();
}

void Ranks::ReportEnds() {
  const absl::Duration now = parts_.clock.BootNow();
  bool waiting = false;
  bool reported = false;
  for (auto it = ranks_.begin(); it != ranks_.end();) {
    const auto& [key, rank] = *it;
    if (!rank.complete) {
      ++it;
      continue;
    }
    // Without a coordinator there is time; unless this worker leaves.
    const bool late =
        now - rank.exited_at >= kEndOfReports && (parts_.connected() || !refusing_.empty());
    if (parts_.reports.Pending(key) > 0 && !late) {
      waiting = true;
      ++it;
      continue;
    }
    const v1::ExitStatus exit = Describe(rank);
    log::Info("rank ended", {{"rank", key.Text()},
                             {"code", exit.code()},
                             {"signal", exit.signal()},
                             {"killed_by_worker", exit.killed_by_worker()},
                             {"message", exit.message()}});
    const Exporter::Cause cause = exit.killed_by_worker() ? Exporter::Cause::kStopped
                                  : exit.signal() != 0    ? Exporter::Cause::kSignal
                                  : exit.code() != 0      ? Exporter::Cause::kError
                                                          : Exporter::Cause::kClean;
    parts_.exporter.RankEnded(key, cause);
    parts_.ledger.Exited(key, exit, now);
    v1::WorkerMessage message;
    *message.mutable_rank_exited()->mutable_rank() = key.ToProto();
    *message.mutable_rank_exited()->mutable_exit() = exit;
    parts_.send(std::move(message));
    it = ranks_.erase(it);
    reported = true;
  }
  // Best effort: told and not recorded, an exit is told once more by the next incarnation.
  if (reported) (void)parts_.persist();
  if (waiting && !reporting_) {
    reporting_ = true;
    parts_.loop.PostAfter(parts_.connected() ? kReportPoll : kOutagePoll, [this] {
      reporting_ = false;
      ReportEnds();
    });
  }
}

v1::ExitStatus Ranks::Describe(const Rank& rank) const {
  v1::ExitStatus exit;
  exit.set_code(rank.exit->code);
  exit.set_signal(rank.exit->signal);
  exit.set_killed_by_worker(rank.by_worker);
  if (rank.log) exit.set_stderr_tail(rank.log->StderrTail());
  std::string message;
  if (!rank.failure.ok()) {
    message = std::string(rank.failure.message());
  } else if (rank.finished && !rank.finished->message().empty()) {
    message = rank.finished->message();
  } else if (rank.by_worker) {
    message = rank.stop_reason.empty() ? "ended by the worker: its lease was not renewed"
                                       : fmt::format("stopped: {}", rank.stop_reason);
  } else if (rank.exit->code != 0 || rank.exit->signal != 0) {
    message = Printable(LastLines(exit.stderr_tail()));
  }
  exit.set_message(Shortened(message));
  return exit;
}

std::set<std::string> Ranks::Jobs() const {
  std::set<std::string> jobs;
  for (const auto& [key, rank] : ranks_) jobs.insert(key.job_uid);
  return jobs;
}

int64_t Ranks::devices_in_use() const {
  return std::count_if(ranks_.begin(), ranks_.end(), [](const auto& entry) {
    return entry.second.device >= 0 && !entry.second.exit;
  });
}

std::shared_ptr<RankLog> Ranks::FindLog(const std::string& job_uid, int64_t attempt,
                                        int64_t rank) const {
  for (const auto& [key, entry] : ranks_) {
    if (key.job_uid == job_uid && key.attempt == attempt && key.rank == rank) return entry.log;
  }
  return nullptr;
}

}  // namespace mega::daemon
