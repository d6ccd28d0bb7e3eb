#include "coordinator/core/nodes/witnesses.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "coordinator/core/nodes/liveness.h"

namespace mega::core {
namespace {

constexpr int kWitnesses = 3;
constexpr int kProbes = 64;         // candidates looked at for one set
constexpr int kNodesPerTick = 256;  // a fleet of 10,000 is looked through in four seconds
constexpr int kSentRenewals = 64;

const v1::NodeLive* FindLive(const Draft& draft, const NodeId& id) {
  const auto live = draft.state().live.nodes.find(id);
  return live == draft.state().live.nodes.end() ? nullptr : &live->second;
}

bool IsInSession(const Draft& draft, const v1::NodeLive& live) {
  if (draft.options().mutants.renewals_need_no_ack) {
    return live.session() != 0 && !live.suspect();
  }
  const absl::Duration silent = draft.clock() - absl::Nanoseconds(live.acked_ns());
  return live.acks() && silent < draft.options().lease / 2;
}

// Since when this witness cannot have said "no session".
std::optional<absl::Duration> InSessionSince(const Draft& draft, const v1::Witness& witness) {
  const v1::Node* node = draft.FindNode(witness.node());
  const v1::NodeLive* live = FindLive(draft, witness.node());
  if (node == nullptr || live == nullptr) return std::nullopt;
  const bool is_over = witness.incarnation() >= node->first_incarnation() &&
                       witness.incarnation() < node->incarnation();
  // It has been replaced on its own machine, and only its own answers count.
  if (is_over) return absl::Nanoseconds(live->incarnation_ns());
  if (witness.incarnation() != node->incarnation() || !IsInSession(draft, *live)) {
    return std::nullopt;
  }
  if (draft.options().mutants.gaps_forgiven || draft.options().mutants.renewals_need_no_ack) {
    return absl::ZeroDuration();
  }
  return absl::Nanoseconds(live->in_session_since_ns());
}

std::optional<absl::Duration> InSessionSince(const Draft& draft, const v1::WitnessSet& set) {
  std::vector<absl::Duration> since;
  for (const v1::Witness& witness : set.witnesses()) {
    if (const auto one = InSessionSince(draft, witness)) since.push_back(*one);
  }
  size_t majority = static_cast<size_t>(set.witnesses_size()) / 2 + 1;
  if (draft.options().mutants.one_witness_is_enough) majority = 1;
  if (draft.options().mutants.empty_set_is_majority && set.witnesses().empty()) {
    return absl::ZeroDuration();
  }
  if (since.size() < majority) return std::nullopt;
  std::ranges::sort(since);
  return since[majority - 1];
}

bool IsAcked(const v1::Node& node, const v1::NodeLive& live) {
  return node.witness_sets().empty() ||
         node.witness_sets().rbegin()->number() == live.acked_witness_set();
}

// May be named as a witness, and needs some itself.
bool TakesPart(const v1::Node& node, const v1::NodeLive& live) {
  return node.state() == v1::NODE_STATE_READY && live.session() != 0 && !live.suspect() &&
         live.acks() && !node.address().empty();
}

bool HasLeft(const Draft& draft, const v1::Witness& witness) {
  const v1::Node* node = draft.FindNode(witness.node());
  const v1::NodeLive* live = FindLive(draft, witness.node());
  if (node == nullptr || live == nullptr) return true;
  return node->incarnation() != witness.incarnation() || node->address() != witness.address() ||
         node->state() != v1::NODE_STATE_READY ||
         draft.clock() - absl::Nanoseconds(live->renewed_ns()) >= draft.options().lease;
}

const std::string& RackOf(const v1::Node& node) {
  static const std::string kNone;
  const auto rack = node.labels().find("rack");
  return rack == node.labels().end() ? kNone : rack->second;
}

using Candidates = std::vector<const v1::Node*>;

Candidates FindCandidates(const Draft& draft) {
  Candidates candidates;
  for (const auto& [id, node] : draft.state().durable.nodes) {
    const v1::NodeLive* live = FindLive(draft, id);
    if (live != nullptr && TakesPart(node, *live)) candidates.push_back(&node);
  }
  return candidates;
}

// Those of `kept`, then others: each from a rack of its own that is not the node's; then from any
// other rack; then from its own.
v1::WitnessSet Choose(const v1::Node& node, const std::vector<v1::Witness>& kept,
                      const Candidates& candidates) {
  v1::WitnessSet set;
  std::set<NodeId> taken = {node.name()};
  std::set<std::string> racks = {RackOf(node)};
  for (const v1::Witness& witness : kept) {
    *set.add_witnesses() = witness;
    taken.insert(witness.node());
    const auto known = std::ranges::find(candidates, witness.node(), &v1::Node::name);
    if (known != candidates.end()) racks.insert(RackOf(**known));
  }
  const size_t step = std::max<size_t>(1, candidates.size() / kProbes);
  const size_t probes = std::min<size_t>(candidates.size(), kProbes);
  const uint64_t start = Fnv1a(node.name());
  for (const int pass : {0, 1, 2}) {
    for (size_t i = 0; i < probes && set.witnesses_size() < kWitnesses; ++i) {
      const v1::Node& other = *candidates[(start + i * step) % candidates.size()];
      const bool is_near =
          pass == 0 ? racks.contains(RackOf(other)) : pass == 1 && RackOf(other) == RackOf(node);
      if (is_near || !taken.insert(other.name()).second) continue;
      racks.insert(RackOf(other));
      v1::Witness& witness = *set.add_witnesses();
      witness.set_node(other.name());
      witness.set_address(other.address());
      witness.set_incarnation(other.incarnation());
    }
  }
  return set;
}

void Assign(Draft& draft, const NodeId& id, Candidates& candidates) {
  const v1::Node& node = *draft.FindNode(id);
  const v1::NodeLive& live = draft.LiveNode(id);
  if (!TakesPart(node, live) || !IsAcked(node, live)) return;
  std::vector<v1::Witness> kept;
  bool is_whole = !node.witness_sets().empty();
  if (is_whole) {
    for (const v1::Witness& witness : node.witness_sets().rbegin()->witnesses()) {
      if (!HasLeft(draft, witness)) kept.push_back(witness);
    }
    is_whole = kept.size() == kWitnesses;
  }
  if (is_whole) return;
  if (candidates.empty()) candidates = FindCandidates(draft);
  v1::WitnessSet set = Choose(node, kept, candidates);
  const int before =
      node.witness_sets().empty() ? -1 : node.witness_sets().rbegin()->witnesses_size();
  if (set.witnesses_size() == before && std::ssize(kept) == before) return;  // nobody better
  v1::Meta& meta = draft.EditMeta();
  set.set_number(std::max<int64_t>(1, meta.next_witness_set()));
  meta.set_next_witness_set(set.number() + 1);
  *draft.EditNode(id).add_witness_sets() = std::move(set);
  SendWitnesses(draft, id);
}

}  // namespace

void NoteRenewal(Draft& draft, const NodeId& node, int64_t heartbeat_seq) {
  v1::NodeLive& live = draft.LiveNode(node);
  const int64_t now = absl::ToInt64Nanoseconds(draft.clock());
  const int64_t oldest = now - absl::ToInt64Nanoseconds(draft.options().lease / 2);
  auto& renewals = *live.mutable_renewals();
  int old = 0;
  while (old < renewals.size() &&
         (renewals[old].sent_ns() < oldest || renewals.size() - old >= kSentRenewals)) {
    ++old;
  }
  renewals.DeleteSubrange(0, old);
  v1::SentRenewal& sent = *renewals.Add();
  sent.set_heartbeat_seq(heartbeat_seq);
  sent.set_sent_ns(now);
}

// The ack proves that the node has had this renewal at some time between its sending and now; so
// between two of them it had none for no longer than from the first's sending to the second's ack.
void OnRenewalAck(Draft& draft, const NodeId& node, int64_t heartbeat_seq) {
  v1::NodeLive& live = draft.LiveNode(node);
  auto& renewals = *live.mutable_renewals();
  const auto acked = std::ranges::find(renewals, heartbeat_seq, &v1::SentRenewal::heartbeat_seq);
  if (acked == renewals.end()) return;
  const int64_t now = absl::ToInt64Nanoseconds(draft.clock());
  const int64_t gap_max = absl::ToInt64Nanoseconds(draft.options().lease / 2);
  if (now - acked->sent_ns() < gap_max) {
    if (!live.acks() || now - live.acked_ns() >= gap_max) live.set_in_session_since_ns(now);
    live.set_acked_ns(acked->sent_ns());
    live.set_acks(true);
  }
  renewals.erase(renewals.begin(), std::next(acked));
}

void OnWitnessSetAck(Draft& draft, const NodeId& id, int64_t number) {
  const auto& sets = draft.FindNode(id)->witness_sets();
  const auto acked = std::ranges::find(sets, number, &v1::WitnessSet::number);
  v1::NodeLive& live = draft.LiveNode(id);
  if (acked == sets.end() || number <= live.acked_witness_set()) return;
  live.set_acked_witness_set(number);
  const int older = static_cast<int>(acked - sets.begin());
  if (older == 0) return;
  draft.EditNode(id).mutable_witness_sets()->DeleteSubrange(0, older);
  // Until now the node may have run on by an older set, which is not asked about any more.
  live.set_renewed_ns(absl::ToInt64Nanoseconds(draft.clock()));
}

void SendWitnesses(Draft& draft, const NodeId& id) {
  const v1::Node& node = *draft.FindNode(id);
  const v1::NodeLive& live = draft.LiveNode(id);
  if (live.session() == 0 || IsAcked(node, live)) return;
  v1::CoordinatorMessage message;
  v1::Lease& lease = *message.mutable_lease();
  FillLease(draft, live.newest_heartbeat_seq(), live.session(), &lease);
  *lease.mutable_witnesses() = *node.witness_sets().rbegin();
  // Not immediate: it leaves when the set is durable.
  draft.Send(id, live.session(), std::move(message), draft.options().mutants.set_before_durable);
}

void OnRelayedHeartbeat(Draft& draft, const NodeId& via, const v1::RelayedHeartbeat& relayed) {
  const v1::Node* node = draft.FindNode(relayed.node());
  const auto names_via = [&](const v1::WitnessSet& set) {
    return std::ranges::count(set.witnesses(), via, &v1::Witness::node) != 0;
  };
  const bool is_lost = node != nullptr && node->state() != v1::NODE_STATE_READY &&
                       !draft.options().mutants.relay_revives;
  const bool is_renewed = node != nullptr && !is_lost &&
                          node->incarnation() == relayed.incarnation() &&
                          std::ranges::any_of(node->witness_sets(), names_via);
  v1::CoordinatorMessage message;
  v1::RelayedLease& answer = *message.mutable_relayed_lease();
  answer.set_node(relayed.node());
  answer.set_incarnation(relayed.incarnation());
  answer.set_heartbeat_seq(relayed.heartbeat_seq());
  if (is_renewed) {
    // It stays suspect: nothing new can reach it.
    v1::NodeLive& live = draft.LiveNode(relayed.node());
    live.set_renewed_ns(absl::ToInt64Nanoseconds(draft.clock()));
    *live.mutable_last_heartbeat() = draft.wall();
    FillLease(draft, relayed.heartbeat_seq(), /*session=*/0, answer.mutable_lease());
  }
  draft.Send(via, draft.LiveNode(via).session(), std::move(message), /*immediate=*/true);
}

void AssignWitnesses(Draft& draft) {
  const auto& nodes = draft.state().durable.nodes;
  std::string& cursor = draft.live().witness_cursor;
  Candidates candidates;
  std::vector<NodeId> due;
  auto next = nodes.upper_bound(cursor);
  for (size_t i = 0; i < std::min<size_t>(kNodesPerTick, nodes.size()); ++i, ++next) {
    if (next == nodes.end()) next = nodes.begin();
    due.push_back(next->first);
  }
  if (!due.empty()) cursor = due.back();
  for (const NodeId& id : due) Assign(draft, id, candidates);
}

std::optional<absl::Duration> InSessionSince(const Draft& draft, const v1::Node& node) {
  absl::Duration since;
  const auto& sets = node.witness_sets();
  for (int i = 0; i < sets.size(); ++i) {
    if (draft.options().mutants.newest_set_only && i + 1 < sets.size()) continue;
    const auto of_set = InSessionSince(draft, sets[i]);
    if (!of_set) return std::nullopt;
    since = std::max(since, *of_set);
  }
  return since;
}

}  // namespace mega::core
