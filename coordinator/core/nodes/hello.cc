#include "coordinator/core/nodes/hello.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/dns_name.h"
#include "base/utf8.h"
#include "coordinator/core/health/findings.h"
#include "coordinator/core/health/watch.h"
#include "coordinator/core/jobs/attempt.h"
#include "coordinator/core/jobs/removal.h"
#include "coordinator/core/nodes/cordon.h"
#include "coordinator/core/nodes/hello_size.h"
#include "coordinator/core/nodes/liveness.h"
#include "coordinator/core/nodes/witnesses.h"
#include "coordinator/core/retention.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr int kDevicesPerNode = 4096;
constexpr size_t kShownNameBytes = 100;
// Numbers go on from what a worker says it has kept, so they must leave room above it. A node that
// is given a thousand commands a second reaches this in 140,000 years.
constexpr int64_t kMostCommandSeq = int64_t{1} << 52;

using RankKey = std::tuple<JobUid, int64_t, int64_t, int64_t>;

RankKey KeyOf(const v1::RankRef& ref) {
  return {ref.job_uid(), ref.attempt(), ref.epoch(), ref.rank()};
}

enum class Verdict { kAccept, kLate, kRefuse, kRefuseForEver };
struct Judgement {
  Verdict verdict = Verdict::kAccept;
  std::string reason;
};

Judgement JudgeShape(const NodeId& id, const v1::Hello& hello) {
  const v1::Node& node = hello.node();
  if (std::string wrong = WhatIsWrongWithNodeName(id); !wrong.empty()) {
    return {Verdict::kRefuseForEver, std::move(wrong)};
  }
  if (node.name() != id) {
    return {Verdict::kRefuseForEver, fmt::format("node '{}' says hello in the session of node '{}'",
                                                 CutUtf8(node.name(), kShownNameBytes), id)};
  }
  std::set<int64_t> indices;
  for (const v1::Device& device : node.devices()) indices.insert(device.index());
  if (node.devices_size() > kDevicesPerNode || std::ssize(indices) != node.devices_size()) {
    return {Verdict::kRefuseForEver,
            fmt::format("node '{}' names {} devices with {} different indices; at most {}, each "
                        "once",
                        id, node.devices_size(), indices.size(), kDevicesPerNode)};
  }
  if (const std::string wrong = WhatIsTooLarge(hello); !wrong.empty()) {
    return {Verdict::kRefuseForEver,
            fmt::format("node '{}' says too much of itself: {}", id, wrong)};
  }
  if (hello.last_command_seq() < 0 || hello.last_command_seq() > kMostCommandSeq) {
    return {Verdict::kRefuseForEver,
            fmt::format("node '{}' says that it keeps command {}, a number that no command can "
                        "have; its worker.json is damaged: start the worker with another state "
                        "folder",
                        id, hello.last_command_seq())};
  }
  return {};
}

// Has this worker taken over from the known one, so that what it does not name has ended? It has if
// it locked the same state folder: on the same boot it has killed what that one left; after a
// reboot nothing runs. The machine's name or a newer process alone prove nothing. Workers of
// release 0.1 name no folder; the same boot has to do for them.
bool IsSuccessor(const v1::Node& known, const v1::Node& node) {
  if (!known.state_folder_id().empty()) return known.state_folder_id() == node.state_folder_id();
  return known.boot_id() == node.boot_id();
}

// A hello may come late, from a connection or a process that has been replaced since: its claims
// are old, and believing "nothing runs here" would start ranks twice.
Judgement JudgeAge(const Draft& draft, const v1::Node& known, const v1::NodeLive& live,
                   const v1::Hello& hello, bool is_of_another_cluster) {
  const v1::Node& node = hello.node();
  // Nothing of the worker before can be running: its node was given away, or it said goodbye.
  const bool is_over =
      known.state() == v1::NODE_STATE_LOST || known.state() == v1::NODE_STATE_DRAINING;
  if (node.boot_id() == known.boot_id() && node.incarnation() == known.incarnation()) {
    const bool is_late =
        hello.heartbeat_seq() <= live.newest_heartbeat_seq() ||
        (!is_of_another_cluster && hello.last_command_seq() < known.acked_command_seq());
    return {is_late ? Verdict::kLate : Verdict::kAccept, ""};
  }
  if (node.incarnation() < known.incarnation() && !is_over) {
    return {Verdict::kRefuse,
            fmt::format("a newer worker of node '{}' (incarnation {}) has taken its place",
                        node.name(), known.incarnation())};
  }
  if (!is_over && !IsSuccessor(known, node) && !draft.options().mutants.any_hello_is_proof) {
    return {
        Verdict::kRefuse,
        fmt::format("node '{}' is the name of a worker with another state folder, {}, whose "
                    "ranks may be running until it is lost; give one of the two another --node "
                    "name, or this one the state folder of that",
                    node.name(),
                    live.session() != 0 && !live.suspect() ? "in session" : "not heard of now")};
  }
  return {};
}

// Both sides know of a cluster, and not of the same. Release 0.1 knew of none.
bool IsOfAnotherCluster(const v1::Meta& meta, const v1::Hello& hello) {
  return !meta.cluster_id().empty() && !hello.cluster_id().empty() &&
         meta.cluster_id() != hello.cluster_id();
}

// Its ranks would look like leftovers here, and be ended: the work of a coordinator that may only
// be away. Without ranks it is free to be taken.
Judgement JudgeCluster(const v1::Meta& meta, const v1::Hello& hello) {
  if (!IsOfAnotherCluster(meta, hello) || hello.running().empty()) return {};
  return {Verdict::kRefuse,
          fmt::format(
              "node '{}' runs {} ranks of cluster {}, and this coordinator is of cluster {}, "
              "which knows nothing of them; start the coordinator on its own state folder, "
              "or stop the worker and give it a new one",
              hello.node().name(), hello.running_size(), hello.cluster_id(), meta.cluster_id())};
}

// What an idle worker of another cluster has kept is of no interest here, and its command numbers
// are none of ours. It forgets them itself with the lease that names our cluster.
v1::Hello WithoutItsPast(const v1::Hello& hello) {
  v1::Hello fresh;
  *fresh.mutable_node() = hello.node();
  fresh.set_heartbeat_seq(hello.heartbeat_seq());
  *fresh.mutable_findings() = hello.findings();
  return fresh;
}

// Is this rank one that the node should be running?
bool IsWanted(const Draft& draft, const NodeId& node, const v1::RankRef& ref) {
  const v1::Job* job = draft.FindJob(ref.job_uid());
  if (job == nullptr || ref.rank() < 0) return false;
  const v1::Attempt* attempt = CurrentAttempt(draft, *job, ref.attempt(), ref.epoch());
  if (attempt == nullptr || attempt->state() == v1::ATTEMPT_STATE_ENDED) return false;
  return ref.rank() < attempt->ranks_size() && attempt->ranks(ref.rank()).node() == node &&
         MayRun(attempt->ranks(ref.rank()));
}

// The StartRanks of the attempt is on its way still: the worker has not kept it.
bool IsStartPending(const Draft& draft, const NodeId& node, const v1::Job& job,
                    int64_t last_command_seq) {
  return std::ranges::any_of(CommandsOf(draft.state(), node), [&](const auto& entry) {
    const v1::Command& command = entry.second.command();
    return entry.first.second > last_command_seq && command.has_start_ranks() &&
           command.start_ranks().job_uid() == job.uid() &&
           command.start_ranks().epoch() == NewestAttempt(job).epoch();
  });
}

// Ranks of `job` that were placed on the node and that it does not name are dead.
void ReconcileJob(Draft& draft, const NodeId& id, const JobUid& uid, const v1::Hello& hello,
                  const std::set<RankKey>& running) {
  const v1::Job& job = *draft.FindJob(uid);
  const v1::Attempt& attempt = *LiveAttempt(job);
  const bool is_stopping = attempt.state() == v1::ATTEMPT_STATE_STOPPING;
  const bool is_pending = IsStartPending(draft, id, job, hello.last_command_seq());
  if (is_pending && !is_stopping) return;
  std::set<int64_t> dead;
  bool any_alive = false;
  for (const v1::RankState& rank : attempt.ranks()) {
    if (rank.node() != id || !MayRun(rank)) continue;
    const bool is_alive = running.contains({uid, attempt.number(), attempt.epoch(), rank.rank()});
    any_alive |= is_alive;
    if (!is_alive) dead.insert(rank.rank());
  }
  if (!dead.empty()) {
    LoseRanks(draft, draft.EditJob(uid), id,
              is_pending ? "they had not been started" : "its worker came back without them",
              &dead);
  }
  // The order to stop may have been acked by a process that is gone.
  if (any_alive && is_stopping) SendStopRanks(draft, *draft.FindJob(uid), absl::ZeroDuration());
}

void StopUnwanted(Draft& draft, const NodeId& id, const v1::Hello& hello) {
  std::map<std::tuple<JobUid, int64_t, int64_t>, v1::Command> stops;
  for (const v1::RankRef& ref : hello.running()) {
    if (IsWanted(draft, id, ref)) continue;
    if (!draft.options().mutants.forget_unwanted) *draft.LiveNode(id).add_unwanted() = ref;
    v1::StopRanks& stop = *stops[{ref.job_uid(), ref.attempt(), ref.epoch()}].mutable_stop_ranks();
    stop.set_job_uid(ref.job_uid());
    stop.set_attempt(ref.attempt());
    stop.set_epoch(ref.epoch());
    *stop.mutable_grace() = ToProto(absl::ZeroDuration());
    stop.set_reason("this attempt is over; its ranks have been replaced");
  }
  for (auto& [key, stop] : stops) draft.AddCommand(id, std::move(stop));
}

void Register(Draft& draft, const NodeId& id, const v1::Hello& hello) {
  const v1::Node* known = draft.FindNode(id);
  v1::Node node = hello.node();
  KeepOwn(known, node);
  KeepOwnFindings(known, node);
  node.set_state(v1::NODE_STATE_READY);
  node.set_devices_in_use(0);
  node.clear_last_heartbeat();
  // Sets are of one incarnation: a new one holds none.
  node.clear_witness_sets();
  if (known != nullptr && known->incarnation() == node.incarnation()) {
    *node.mutable_witness_sets() = known->witness_sets();
  }
  const bool is_successor = known != nullptr && IsSuccessor(*known, node);
  node.set_first_incarnation(is_successor ? known->first_incarnation() : node.incarnation());
  *node.mutable_register_time() = known ? known->register_time() : draft.wall();
  node.set_acked_command_seq(hello.last_command_seq());
  node.set_last_command_seq(
      std::max(known ? known->last_command_seq() : 0, hello.last_command_seq()));
  draft.AddNode(std::move(node));
}

// No session yet: commands made meanwhile are kept, and sent in order at the end. What it is as a
// witness goes on over the sessions of one incarnation, and starts clean with a new one.
void BeginAnew(Draft& draft, const v1::Node* known, const v1::Hello& hello, v1::NodeLive& live) {
  const v1::NodeLive before = std::exchange(live, v1::NodeLive());
  live.set_renewed_ns(before.renewed_ns());
  if (known == nullptr || known->incarnation() != hello.node().incarnation()) {
    live.set_incarnation_ns(absl::ToInt64Nanoseconds(draft.clock()));
    return;
  }
  *live.mutable_renewals() = before.renewals();
  live.set_acks(before.acks());
  live.set_acked_ns(before.acked_ns());
  live.set_in_session_since_ns(before.in_session_since_ns());
  live.set_incarnation_ns(before.incarnation_ns());
}

void ResendCommands(Draft& draft, const NodeId& id, int64_t session, int64_t last_command_seq) {
  std::vector<CommandKey> done;  // those that the worker has kept
  std::vector<std::pair<CommandKey, v1::DeleteCheckpoint>> void_removals;
  for (const auto& [key, pending] : CommandsOf(draft.state(), id)) {
    const v1::Command& command = pending.command();
    if (key.second <= last_command_seq) {
      done.push_back(key);
      continue;
    }
    if (command.has_delete_checkpoint() && IsVoid(draft, command.delete_checkpoint())) {
      void_removals.emplace_back(key, command.delete_checkpoint());
      continue;
    }
    v1::CoordinatorMessage message;
    *message.mutable_command() = command;
    draft.Send(id, session, std::move(message), /*immediate=*/false);
  }
  for (const CommandKey& key : done) draft.DeleteCommand(key);
  for (const auto& [key, order] : void_removals) Withdraw(draft, key, order);
}

void Refuse(Draft& draft, const NodeId& id, int64_t session, const Judgement& judgement) {
  v1::CoordinatorMessage message;
  message.mutable_reject()->set_reason(judgement.reason);
  message.mutable_reject()->set_fatal(judgement.verdict == Verdict::kRefuseForEver);
  draft.Send(id, session, std::move(message), /*immediate=*/false);
  draft.CloseSession(id, session);
}

}  // namespace

std::string WhatIsWrongWithNodeName(const NodeId& id) {
  if (IsHostName(id)) return "";
  return fmt::format(
      "'{}' is not the name of a node, which is {}; start the worker with --node NAME",
      CutUtf8(id, kShownNameBytes), kHostNameRule);
}

void OnHello(Draft& draft, const NodeId& id, int64_t session, const v1::Hello& said) {
  if (Judgement shape = JudgeShape(id, said); shape.verdict != Verdict::kAccept) {
    return Refuse(draft, id, session, shape);
  }
  if (Judgement cluster = JudgeCluster(draft.meta(), said); cluster.verdict != Verdict::kAccept) {
    return Refuse(draft, id, session, cluster);
  }
  const bool is_of_another_cluster = IsOfAnotherCluster(draft.meta(), said);
  const v1::Hello fresh = is_of_another_cluster ? WithoutItsPast(said) : v1::Hello();
  const v1::Hello& hello = is_of_another_cluster ? fresh : said;
  if (const auto live = draft.live().nodes.find(id); live != draft.live().nodes.end()) {
    if (session == live->second.session()) return;  // a session says hello once
    if (session <= live->second.newest_session()) return draft.CloseSession(id, session);
  }
  const v1::Node* known = draft.FindNode(id);
  if (known == nullptr && draft.state().durable.nodes.size() >= kMostNodes &&
      !ForgetOldestNode(draft)) {
    return Refuse(draft, id, session,
                  {Verdict::kRefuse,
                   fmt::format("node '{}' is new, and the cluster has {} nodes, as many as it may "
                               "have, and none is lost and can be forgotten",
                               id, kMostNodes)});
  }
  if (known != nullptr) {
    const Judgement age = JudgeAge(draft, *known, draft.LiveNode(id), hello, is_of_another_cluster);
    if (age.verdict == Verdict::kLate) return draft.CloseSession(id, session);
    if (age.verdict != Verdict::kAccept) return Refuse(draft, id, session, age);
  }
  const bool is_same_boot = known != nullptr && known->boot_id() == hello.node().boot_id();
  v1::NodeLive& live = draft.LiveNode(id);
  if (live.session() != 0) draft.CloseSession(id, live.session());
  BeginAnew(draft, known, hello, live);
  Register(draft, id, hello);
  SetProbeFindings(draft, id, hello.findings());

  // A machine that was rebooted runs nothing of what it ran before.
  std::set<RankKey> running;
  if (is_same_boot) {
    for (const v1::RankRef& ref : hello.running()) running.insert(KeyOf(ref));
  }
  for (const v1::RankExited& exited : hello.exited()) OnRankExited(draft, id, exited);
  for (const JobUid& uid : JobsOn(draft.state(), id)) {
    ReconcileJob(draft, id, uid, hello, running);
  }
  StopUnwanted(draft, id, hello);
  SettleAttempts(draft);

  live.set_session(session);
  live.set_newest_session(session);
  live.clear_quiet_until_ns();
  ResendCommands(draft, id, session, hello.last_command_seq());
  OnWitnessSetAck(draft, id, hello.acked_witness_set());
  Renew(draft, id, hello.heartbeat_seq(), /*is_hello=*/true);
  CountWatchesAfresh(draft, id);
  draft.ClusterChanged();
}

}  // namespace mega::core
