#include "worker/daemon/lease/lease.h"

#include <algorithm>

namespace mega::lease {
namespace {

constexpr size_t kUnanswered = 64;

int64_t Send(State& state, absl::Duration now) {
  const int64_t seq = state.next_seq++;
  state.unanswered[seq] = now;
  if (state.unanswered.size() > kUnanswered) state.unanswered.erase(state.unanswered.begin());
  state.heartbeat_due = now + state.options.heartbeat;
  return seq;
}

// Answers may come late, twice or out of order; only one for a newer heartbeat moves the lease.
// It may also shorten it: the coordinator's newest word holds.
bool Grant(State& state, const Granted& granted) {
  const auto sent = state.unanswered.find(granted.heartbeat_seq);
  if (sent == state.unanswered.end() || granted.heartbeat_seq <= state.newest_granted) return false;
  state.newest_granted = granted.heartbeat_seq;
  state.renewed = sent->second;
  state.ttl = std::clamp(granted.ttl, absl::ZeroDuration(), state.options.longest);
  state.end = state.renewed + state.ttl;
  state.unanswered.erase(state.unanswered.begin(), std::next(sent));
  return true;
}

bool IsHalfOver(const State& state, absl::Duration now) {
  return state.ttl > absl::ZeroDuration() && now >= state.renewed + state.ttl / 2;
}

}  // namespace

bool MayRun(const State& state, absl::Duration now) {
  if (state.options.mutant_outlive_lease) return true;
  return state.ttl > absl::ZeroDuration() && now < state.end;
}

Decision Step(State& state, const Input& input, absl::Duration now) {
  Decision decision;
  if (std::holds_alternative<HelloDue>(input)) {
    state.in_session = true;
    decision.send = Send(state, now);
  } else if (const auto* granted = std::get_if<Granted>(&input)) {
    decision.push_lease_end = Grant(state, *granted);
  } else if (std::holds_alternative<SessionDown>(input)) {
    state.in_session = false;
  } else if (now >= state.heartbeat_due) {
    // Out of session the beat goes on, for the witnesses.
    if (state.in_session) decision.send = Send(state, now);
    decision.ask_witnesses = IsHalfOver(state, now);
    state.heartbeat_due = now + state.options.heartbeat;
  }
  decision.kill_ranks = !MayRun(state, now);
  decision.wake_at = state.heartbeat_due;
  if (now < state.end) decision.wake_at = std::min(decision.wake_at, state.end);
  return decision;
}

}  // namespace mega::lease
