#include "worker/daemon/lease/lease.h"

#include <algorithm>

namespace mega::lease {
namespace {

constexpr size_t kUnanswered = 64;
constexpr size_t kRounds = 16;

bool HoldsSet(const State& state) { return state.witnesses.number() > 0; }

int64_t Send(State& state, absl::Duration now) {
  const int64_t seq = state.next_seq++;
  state.unanswered[seq] = now;
  if (state.unanswered.size() > kUnanswered) state.unanswered.erase(state.unanswered.begin());
  state.heartbeat_due = now + state.options.heartbeat;
  return seq;
}

// Until when ranks may run: to the end of the lease, or for one lease from the newest asking in
// which a majority of the witnesses had no session, but no longer than the grace. True if it moved.
bool MoveEnd(State& state) {
  absl::Duration end = state.renewed + state.ttl;
  if (state.outage) {
    absl::Duration run_on = *state.outage + state.ttl;
    if (!state.options.mutants.no_outage_grace) run_on = std::min(run_on, end + state.outage_grace);
    end = std::max(end, run_on);
  }
  return end != std::exchange(state.end, end);
}

// A witness cannot prove what it passes on: for longer than the coordinator has given in a session
// nobody may run. Shorter is believed, for the coordinator may count on it.
void BoundByDirect(State& state, const Granted& granted) {
  if (!granted.is_relayed) {
    state.direct_ttl = state.ttl;
    state.direct_grace = state.outage_grace;
  } else {
    state.ttl = std::min(state.ttl, state.direct_ttl);
    state.outage_grace = std::min(state.outage_grace, state.direct_grace);
  }
}

// Answers may come late, twice or out of order; only one for a newer heartbeat moves the lease.
// It may also shorten it: the coordinator's newest word holds.
bool Renew(State& state, const Granted& granted, absl::Duration now) {
  const auto sent = state.unanswered.find(granted.heartbeat_seq);
  if (sent == state.unanswered.end() || granted.heartbeat_seq <= state.newest_granted) return false;
  state.newest_granted = granted.heartbeat_seq;
  state.renewed = state.options.mutants.lease_from_answer ? now : sent->second;
  state.ttl = std::clamp(granted.ttl, absl::ZeroDuration(), state.options.longest);
  state.outage_grace =
      std::clamp(granted.outage_grace, absl::ZeroDuration(), state.options.longest_grace);
  BoundByDirect(state, granted);
  state.heard = now;
  state.unanswered.erase(state.unanswered.begin(), std::next(sent));
  return true;
}

// What witnesses of the last set said of its askings is void: the coordinator forgets that set as
// soon as it hears that we hold the new one.
void TakeSet(State& state, const mega::v1::WitnessSet& witnesses) {
  if (witnesses.number() <= state.witnesses.number()) return;
  if (state.options.mutants.keep_old_set && HoldsSet(state)) {
    return state.witnesses.set_number(witnesses.number());
  }
  state.witnesses = witnesses;
  if (!state.options.mutants.old_answers_count) state.rounds.clear();
}

void Grant(State& state, const Granted& granted, absl::Duration now, Decision& decision) {
  if (Renew(state, granted, now)) {
    decision.push_lease_end = MoveEnd(state);
    if (!granted.is_relayed) decision.ack_renewal = granted.heartbeat_seq;
  }
  if (granted.is_relayed || granted.witnesses.number() <= 0) return;
  TakeSet(state, granted.witnesses);
  decision.ack_witnesses = state.witnesses.number();
}

bool IsHalfOver(const State& state, absl::Duration now) {
  return state.ttl > absl::ZeroDuration() && now >= state.renewed + state.ttl / 2;
}

// A set without witnesses has nobody who could say that the coordinator is there; the coordinator
// counts it as no majority, too, and waits for the grace.
bool IsOutage(const State& state, const Round& round) {
  const size_t said = round.no_session.size();
  const size_t named = static_cast<size_t>(state.witnesses.witnesses_size());
  if (state.options.mutants.run_on_without_majority && said > 0) return true;
  return HoldsSet(state) && (named == 0 || 2 * said > named);
}

// Answers may come late, even after the lease's end: what counts is when they were asked for.
bool RunOn(State& state, const Round& round, absl::Duration now) {
  if (!IsOutage(state, round)) return false;
  const absl::Duration from = state.options.mutants.run_on_from_answer ? now : round.asked;
  state.outage = state.outage ? std::max(*state.outage, from) : from;
  return MoveEnd(state);
}

void Ask(State& state, absl::Duration now, Decision& decision) {
  const int64_t seq = decision.send ? *decision.send : Send(state, now);
  const auto round = state.rounds.emplace(seq, Round{.asked = now}).first;
  if (state.rounds.size() > kRounds) state.rounds.erase(state.rounds.begin());
  decision.ask_witnesses = seq;
  decision.push_lease_end |= RunOn(state, round->second, now);
}

bool Hear(State& state, const Answered& answer, absl::Duration now) {
  const auto round = state.rounds.find(answer.round);
  if (round == state.rounds.end() || !answer.no_session) return false;
  const bool is_named =
      std::ranges::any_of(state.witnesses.witnesses(), [&](const mega::v1::Witness& witness) {
        return witness.node() == answer.node && (witness.incarnation() == answer.incarnation ||
                                                 state.options.mutants.any_process_answers);
      });
  if (!is_named && !state.options.mutants.old_answers_count) return false;
  round->second.no_session.insert(answer.node);
  return RunOn(state, round->second, now);
}

void Beat(State& state, absl::Duration now, Decision& decision) {
  if (now < state.heartbeat_due) return;
  // Out of session the beat goes on, for the witnesses.
  if (state.in_session) decision.send = Send(state, now);
  if (HoldsSet(state) && IsHalfOver(state, now) && MayRun(state, now)) Ask(state, now, decision);
  state.heartbeat_due = now + state.options.heartbeat;
}

}  // namespace

bool MayRun(const State& state, absl::Duration now) {
  if (state.options.mutants.outlive_lease) return true;
  return state.ttl > absl::ZeroDuration() && now < state.end;
}

absl::Duration NoSessionFrom(const State& state) {
  if (!state.heard) return absl::InfiniteDuration();
  return *state.heard + state.ttl / 2 + state.options.skew;
}

bool HasNoSession(const State& state, absl::Duration now) {
  if (state.options.mutants.eager_witness) return !state.in_session;
  return now >= NoSessionFrom(state);
}

Decision Step(State& state, const Input& input, absl::Duration now) {
  Decision decision;
  if (std::holds_alternative<HelloDue>(input)) {
    state.in_session = true;
    decision.send = Send(state, now);
  } else if (const auto* granted = std::get_if<Granted>(&input)) {
    Grant(state, *granted, now, decision);
  } else if (std::holds_alternative<SessionDown>(input)) {
    state.in_session = false;
  } else if (const auto* answer = std::get_if<Answered>(&input)) {
    decision.push_lease_end = Hear(state, *answer, now);
  } else {
    Beat(state, now, decision);
  }
  decision.kill_ranks = !MayRun(state, now);
  decision.wake_at = state.heartbeat_due;
  if (now < state.end) decision.wake_at = std::min(decision.wake_at, state.end);
  return decision;
}

}  // namespace mega::lease
