#include "coordinator/core/jobs/attempt.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/message_size.h"
#include "base/utf8.h"
#include "coordinator/core/health/watch.h"
#include "coordinator/core/jobs/checkpoint.h"
#include "coordinator/core/jobs/goodput.h"
#include "coordinator/core/jobs/history.h"
#include "coordinator/core/jobs/phase.h"
#include "coordinator/core/nodes/liveness.h"
#include "coordinator/core/recovery/records.h"
#include "coordinator/core/recovery/recovery.h"
#include "coordinator/core/recovery/resize.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr size_t kStderrTailBytes = 64 << 10;
constexpr size_t kMessageBytes = 4 << 10;
constexpr size_t kAddressBytes = 4 << 10;

// To each node of the newest attempt; how many these are.
int64_t SendStartRanks(Draft& draft, const v1::Job& job) {
  const v1::Attempt& attempt = NewestAttempt(job);
  std::map<NodeId, v1::Command> commands;
  for (const v1::RankState& rank : attempt.ranks()) {
    commands[rank.node()].mutable_start_ranks()->add_ranks(rank.rank());
  }
  for (auto& [node, command] : commands) {
    v1::StartRanks& start = *command.mutable_start_ranks();
    start.set_job_uid(job.uid());
    start.set_job_name(job.metadata().name());
    start.set_attempt(attempt.number());
    start.set_epoch(attempt.epoch());
    *start.mutable_spec() = job.resolved_spec();
    *start.mutable_plan() = attempt.plan();
    if (attempt.has_load()) *start.mutable_load() = attempt.load();
    draft.AddCommand(node, std::move(command));
  }
  return std::ssize(commands);
}

// What was asked, refused and waited for led to this attempt; only how far the job has come stays.
void BeginLiveAnew(v1::JobLive& live) {
  v1::JobLive before = std::exchange(live, v1::JobLive());
  if (before.has_newest()) *live.mutable_newest() = std::move(*before.mutable_newest());
}

// Data parallel only: every rank is in one group with every other, so each node gets all addresses.
// With more axes the groups follow from the plan's rank mesh, and nodes get those of theirs only.
void Connect(Draft& draft, const v1::Job& job) {
  const v1::Attempt& attempt = NewestAttempt(job);
  v1::Command command;
  v1::ConnectRanks& connect = *command.mutable_connect_ranks();
  connect.set_job_uid(job.uid());
  connect.set_attempt(attempt.number());
  connect.set_epoch(attempt.epoch());
  for (const v1::RankState& rank : attempt.ranks()) {
    v1::RankAddress& address = *connect.add_addresses();
    address.set_rank(rank.rank());
    address.set_address(rank.address());
  }
  for (const NodeId& node : NodesOf(attempt)) draft.AddCommand(node, command);
}

// Every node gets the addresses of all ranks in one message.
size_t MostAddressBytes(const v1::Attempt& attempt) {
  const size_t ranks = std::max<size_t>(1, static_cast<size_t>(attempt.ranks_size()));
  return std::min(kAddressBytes, kMostMessageBytes / 2 / ranks);
}

// Commands about ranks that are known to be dead must not be sent again: a StartRanks that was
// still on its way would start them after all.
void DropCommands(Draft& draft, const v1::Job& job, const NodeId& node) {
  const v1::Attempt& attempt = NewestAttempt(job);
  const auto is_of_attempt = [&](const v1::Command& command) {
    const auto same = [&](const auto& about) {
      return about.job_uid() == job.uid() && about.attempt() == attempt.number();
    };
    return (command.has_start_ranks() && same(command.start_ranks())) ||
           (command.has_connect_ranks() && same(command.connect_ranks())) ||
           (command.has_stop_ranks() && same(command.stop_ranks())) ||
           (command.has_save_checkpoint() && same(command.save_checkpoint())) ||
           (command.has_run_preflight() && same(command.run_preflight()));
  };
  std::vector<CommandKey> dropped;
  for (const auto& [key, pending] : CommandsOf(draft.state(), node)) {
    if (is_of_attempt(pending.command())) dropped.push_back(key);
  }
  for (const CommandKey& key : dropped) draft.DeleteCommand(key);
}

// Of a rank that a signal ended, and of one whose collective failed by that, either exit may be
// told first: the peers' sockets close before the dead process is reaped. The signal came first.
bool IsEarlierFailure(const v1::Attempt& attempt, const v1::ExitStatus& exit) {
  if (!attempt.has_failed_rank() || exit.signal() == 0 || exit.killed_by_worker()) return false;
  const v1::ExitStatus& blamed = attempt.ranks(attempt.failed_rank()).exit();
  return blamed.signal() == 0 && !blamed.killed_by_worker();
}

void TellBlamed(Draft& draft, const v1::Job& job, const v1::RankState& rank) {
  const v1::ExitStatus& exit = rank.exit();
  draft.AddEvent(job.uid(), v1::SEVERITY_ERROR, "RANK_EXITED", NewestAttempt(job).cause(),
                 {{"rank", std::to_string(rank.rank())},
                  {"node", rank.node()},
                  {"code", std::to_string(exit.code())},
                  {"signal", std::to_string(exit.signal())},
                  {"killed_by_worker", exit.killed_by_worker() ? "true" : "false"}});
}

// Nobody could be told where the rank is, so it will never be connected.
void RefuseAddress(Draft& draft, v1::Job& job, const v1::RankState& rank, size_t bytes,
                   size_t most) {
  const std::string cause = fmt::format(
      "rank {} on node '{}' says that its address has {} bytes, and at most {} of each rank fit "
      "the message that connects them; the worker there is not of this release, or damaged",
      rank.rank(), rank.node(), bytes, most);
  draft.AddEvent(job.uid(), v1::SEVERITY_ERROR, "ADDRESS_REFUSED", cause,
                 {{"rank", std::to_string(rank.rank())},
                  {"node", rank.node()},
                  {"bytes", std::to_string(bytes)}});
  NewestAttempt(job).set_failed_node(rank.node());
  StopAttempt(draft, job, absl::ZeroDuration(), cause);
}

bool MayRunOn(const v1::Attempt& attempt, const NodeId& node) {
  return std::ranges::any_of(attempt.ranks(), [&](const v1::RankState& rank) {
    return rank.node() == node && MayRun(rank);
  });
}

}  // namespace

const v1::Attempt* CurrentAttempt(const Draft& draft, const v1::Job& job, int64_t attempt,
                                  int64_t epoch) {
  if (job.attempts().empty()) return nullptr;
  const v1::Attempt& newest = NewestAttempt(job);
  if (draft.options().mutants.accept_stale_epoch) return &newest;
  return newest.number() == attempt && newest.epoch() == epoch ? &newest : nullptr;
}

const v1::Job* FindRankJob(const Draft& draft, const NodeId& node, const v1::RankRef& ref) {
  const v1::Job* job = draft.FindJob(ref.job_uid());
  if (job == nullptr) return nullptr;
  const v1::Attempt* attempt = CurrentAttempt(draft, *job, ref.attempt(), ref.epoch());
  if (attempt == nullptr || attempt->state() == v1::ATTEMPT_STATE_ENDED) return nullptr;
  if (ref.rank() < 0 || ref.rank() >= attempt->ranks_size()) return nullptr;
  return attempt->ranks(ref.rank()).node() == node ? job : nullptr;
}

std::set<NodeId> NodesOf(const v1::Attempt& attempt) {
  std::set<NodeId> nodes;
  for (const v1::RankState& rank : attempt.ranks()) nodes.insert(rank.node());
  return nodes;
}

void BlameRank(v1::Attempt& attempt, const v1::RankState& rank) {
  attempt.set_failed_rank(rank.rank());
  attempt.set_has_failed_rank(true);
  attempt.set_failed_node(rank.node());
  attempt.set_cause(fmt::format("rank {} on node '{}' ended with {}{}", rank.rank(), rank.node(),
                                DescribeExit(rank.exit()),
                                rank.exit().killed_by_worker() ? " (ended by its worker)" : ""));
}

bool MayRun(const v1::RankState& rank) { return !rank.exited() && !rank.lost(); }

void StartAttempt(Draft& draft, v1::Job& job, v1::Plan plan) {
  MEGA_CHECK(LiveAttempt(job) == nullptr);
  TrimHistory(job);
  draft.ForgetParts(job.uid());
  v1::Meta& meta = draft.EditMeta();
  meta.set_next_epoch(std::max<int64_t>(meta.next_epoch(), 1));
  const int64_t number = job.attempts().empty() ? 1 : NewestAttempt(job).number() + 1;

  v1::Attempt& attempt = *job.add_attempts();
  attempt.set_number(number);
  attempt.set_epoch(meta.next_epoch());
  meta.set_next_epoch(meta.next_epoch() + 1);
  attempt.set_state(v1::ATTEMPT_STATE_STARTING);
  *attempt.mutable_create_time() = draft.wall();
  for (const v1::RankPlacement& placed : plan.ranks()) {
    v1::RankState& rank = *attempt.add_ranks();
    rank.set_rank(placed.rank());
    rank.set_node(placed.node());
    rank.set_device(placed.device());
  }
  if (!job.checkpoints().empty()) {
    *attempt.mutable_load() = *job.checkpoints().rbegin();
    attempt.set_start_step(attempt.load().step());
  }
  *attempt.mutable_plan() = std::move(plan);
  const int64_t nodes = SendStartRanks(draft, job);
  NotePlacement(job);
  NoteSize(draft, job);
  WatchAttempt(draft, job);
  BeginLiveAnew(draft.LiveJob(job.uid()));
  job.set_phase(v1::JOB_PHASE_STARTING);
  job.set_reason(fmt::format("starting {} ranks on {} nodes", attempt.ranks_size(), nodes));
  draft.ClusterChanged();
  draft.AddEvent(
      job.uid(), v1::SEVERITY_INFO, "STARTING",
      fmt::format("attempt {} starts {} ranks on {} nodes, {}", number, attempt.ranks_size(), nodes,
                  attempt.has_load()
                      ? fmt::format("from the checkpoint of step {}", attempt.start_step())
                      : "from the beginning"),
      {{"epoch", std::to_string(attempt.epoch())},
       {"start_step", std::to_string(attempt.start_step())}});
}

void SendStopRanks(Draft& draft, const v1::Job& job, absl::Duration grace) {
  const v1::Attempt& attempt = NewestAttempt(job);
  std::set<NodeId> nodes;
  for (const v1::RankState& rank : attempt.ranks()) {
    if (MayRun(rank)) nodes.insert(rank.node());
  }
  v1::Command command;
  v1::StopRanks& stop = *command.mutable_stop_ranks();
  stop.set_job_uid(job.uid());
  stop.set_attempt(attempt.number());
  stop.set_epoch(attempt.epoch());
  *stop.mutable_grace() = ToProto(grace);
  stop.set_reason(attempt.cause());
  for (const NodeId& node : nodes) draft.AddCommand(node, command);
  draft.LiveJob(job.uid()).set_stop_sent_ns(absl::ToInt64Nanoseconds(draft.clock()));
}

void StopAttempt(Draft& draft, v1::Job& job, absl::Duration grace, std::string cause) {
  v1::Attempt& attempt = NewestAttempt(job);
  if (attempt.state() == v1::ATTEMPT_STATE_STOPPING) return;
  if (!attempt.yields() && !job.cancel_requested()) {
    ChargeStandstill(job, FromProto(draft.wall()), StandstillOf(draft, job));
  }
  attempt.set_state(v1::ATTEMPT_STATE_STOPPING);
  attempt.set_cause(std::move(cause));
  if (!attempt.has_stop_time()) *attempt.mutable_stop_time() = draft.wall();
  SendStopRanks(draft, job, grace);
}

void LoseRanks(Draft& draft, v1::Job& job, const NodeId& node, const std::string& why,
               const std::set<int64_t>* only) {
  v1::Attempt& attempt = NewestAttempt(job);
  int64_t lost = 0;
  for (v1::RankState& rank : *attempt.mutable_ranks()) {
    if (rank.node() != node || !MayRun(rank) || (only && !only->contains(rank.rank()))) continue;
    rank.set_lost(true);
    ++lost;
  }
  if (lost == 0) return;
  if (!MayRunOn(attempt, node)) DropCommands(draft, job, node);
  const std::string cause = fmt::format("{} of its ranks ended on node '{}': {}", lost, node, why);
  draft.AddEvent(job.uid(), v1::SEVERITY_WARNING, "RANKS_LOST", cause,
                 {{"node", node}, {"ranks", std::to_string(lost)}});
  if (attempt.state() != v1::ATTEMPT_STATE_STOPPING) attempt.set_failed_node(node);
  StopAttempt(draft, job, absl::ZeroDuration(), cause);
}

void OnRankReady(Draft& draft, const NodeId& node, const v1::RankReady& ready) {
  const v1::Job* found = FindRankJob(draft, node, ready.rank());
  if (found == nullptr) return;
  const v1::Attempt& current = *LiveAttempt(*found);
  const v1::RankState& known = current.ranks(ready.rank().rank());
  if (current.state() != v1::ATTEMPT_STATE_STARTING || known.ready() || !MayRun(known)) return;

  v1::Job& job = draft.EditJob(found->uid());
  v1::Attempt& attempt = NewestAttempt(job);
  v1::RankState& rank = *attempt.mutable_ranks(ready.rank().rank());
  if (const size_t most = MostAddressBytes(attempt); ready.address().size() > most) {
    return RefuseAddress(draft, job, rank, ready.address().size(), most);
  }
  rank.set_ready(true);
  rank.set_address(ready.address());
  if (!std::ranges::all_of(attempt.ranks(), &v1::RankState::ready)) return;
  TellKept(draft, job);
  Connect(draft, job);
}

void OnRankExited(Draft& draft, const NodeId& node, const v1::RankExited& exited) {
  ForgetUnwanted(draft, node, exited.rank());
  const v1::Job* found = FindRankJob(draft, node, exited.rank());
  if (found == nullptr || !MayRun(LiveAttempt(*found)->ranks(exited.rank().rank()))) return;

  v1::Job& job = draft.EditJob(found->uid());
  v1::Attempt& attempt = NewestAttempt(job);
  v1::RankState& rank = *attempt.mutable_ranks(exited.rank().rank());
  rank.set_exited(true);
  v1::ExitStatus& exit = *rank.mutable_exit();
  exit = exited.exit();
  exit.set_message(CutUtf8(exit.message(), kMessageBytes));
  if (exit.stderr_tail().size() > kStderrTailBytes) {
    exit.mutable_stderr_tail()->erase(0, exit.stderr_tail().size() - kStderrTailBytes);
  }
  const bool stopping = attempt.state() == v1::ATTEMPT_STATE_STOPPING;
  if (IsClean(exit) || (stopping && !IsEarlierFailure(attempt, exit))) return;
  BlameRank(attempt, rank);
  TellBlamed(draft, job, rank);
  if (stopping) return;
  // A worker that ends ranks unasked is leaving, or has lost its lease: what comes next from it is
  // a goodbye or a hello, and until then it is no place to start anything.
  if (exit.killed_by_worker()) {
    const absl::Duration quiet = draft.clock() + draft.options().suspect;
    draft.LiveNode(node).set_quiet_until_ns(absl::ToInt64Nanoseconds(quiet));
    draft.ClusterChanged();
  }
  StopAttempt(draft, job, absl::ZeroDuration(), attempt.cause());
}

void OnStepReport(Draft& draft, const v1::StepReport& report) {
  const v1::Job* found = draft.FindJob(report.job_uid());
  if (found == nullptr || !IsStep(report.step())) return;
  const v1::Attempt* current = CurrentAttempt(draft, *found, report.attempt(), report.epoch());
  if (current == nullptr) return;
  NoteStep(draft, report);
  v1::StepReport& newest = *draft.LiveJob(found->uid()).mutable_newest();
  const bool is_newest =
      report.rank() == 0 && (newest.epoch() != report.epoch() || newest.step() < report.step());
  if (is_newest) newest = report;
  // Reports travel on a stream of their own: the last ones may come after the job has ended.
  if (is_newest && IsTerminal(found->phase())) draft.EditJob(found->uid());
  if (is_newest && EndsRework(*found, report.step())) draft.EditJob(found->uid());
  if (current->state() != v1::ATTEMPT_STATE_STARTING) return;

  v1::Job& job = draft.EditJob(found->uid());
  v1::Attempt& attempt = NewestAttempt(job);
  attempt.set_state(v1::ATTEMPT_STATE_RUNNING);
  *attempt.mutable_first_step_time() = draft.wall();
  if (v1::RecoveryRecord* record = FindRecord(job)) {
    *record->mutable_first_step_time() = draft.wall();
  }
  if (!job.has_start_time()) *job.mutable_start_time() = draft.wall();
  job.set_phase(v1::JOB_PHASE_RUNNING);
  job.set_reason(
      fmt::format("running attempt {} on {} ranks", attempt.number(), attempt.ranks_size()));
  const absl::Duration since =
      FromProto(attempt.first_step_time()) - FromProto(attempt.create_time());
  draft.AddEvent(job.uid(), v1::SEVERITY_INFO, "RUNNING",
                 fmt::format("attempt {} made its first step, step {}, {} after it was placed",
                             attempt.number(), report.step(),
                             absl::FormatDuration(absl::Trunc(since, absl::Milliseconds(1)))),
                 {{"step", std::to_string(report.step())}});
}

void SettleAttempts(Draft& draft) {
  for (const JobUid& uid : draft.TakeTouched()) {
    const v1::Job& touched = *draft.FindJob(uid);
    const v1::Attempt* live = LiveAttempt(touched);
    if (live == nullptr) continue;
    const bool is_stopping = live->state() == v1::ATTEMPT_STATE_STOPPING;
    const bool is_over = std::ranges::none_of(live->ranks(), MayRun) ||
                         (draft.options().mutants.skip_fence && is_stopping);
    if (!is_over) continue;
    v1::Job& job = draft.EditJob(uid);
    v1::Attempt& attempt = NewestAttempt(job);
    attempt.set_state(v1::ATTEMPT_STATE_ENDED);
    *attempt.mutable_end_time() = draft.wall();
    if (attempt.cause().empty()) attempt.set_cause("every rank ended by itself");
    for (const NodeId& node : NodesOf(attempt)) DropCommands(draft, job, node);
    draft.ClusterChanged();
    AfterAttempt(draft, job);
  }
  draft.TakeTouched();
}

}  // namespace mega::core
