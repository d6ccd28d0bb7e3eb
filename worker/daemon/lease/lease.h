// The worker's half of the lease, as one pure function: when heartbeats leave, until when ranks may
// run, and that they end when nobody renews. The coordinator counts a silent node's ranks as dead
// one lease + skew after the last renewal it sent; this code makes that true.
//
// Times are CLOCK_BOOTTIME of this machine. A lease runs from when its owner *sent* the heartbeat
// that was answered, so neither the network's delay nor the other clock matters.
//
//   daemon                                        lease::Step
//   stream is open                    HelloDue  → send = seq: goes into Hello.heartbeat_seq
//   Lease{heartbeat_seq, ttl} came    Granted   → push_lease_end: tell every engine
//   stream is gone                    SessionDown
//   at wake_at, and after each wait   Tick      → send = seq (Heartbeat{seq}), kill_ranks, …
//
// A rank is started only while MayRun. A StartRanks that comes later is not acked: drop the session
// and say hello again, so that it is sent again or withdrawn.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>

#include "absl/time/time.h"

namespace mega::lease {

struct Options {
  absl::Duration heartbeat = absl::Seconds(1);
  // A longer grant is cut to this; nobody hands out such leases.
  absl::Duration longest = absl::Hours(1);

  // A deliberate bug for the simulator: ranks outlive the lease.
  bool mutant_outlive_lease = false;
};

struct State {
  Options options;
  bool in_session = false;
  int64_t next_seq = 1;
  absl::Duration heartbeat_due;
  std::map<int64_t, absl::Duration> unanswered;  // seq → when sent; the newest 64
  int64_t newest_granted = 0;                    // seq
  absl::Duration renewed;                        // when the newest granted heartbeat was sent
  absl::Duration ttl;                            // of it; 0: never had a lease
  absl::Duration end;                            // renewed + ttl
};

struct HelloDue {};
struct Granted {
  int64_t heartbeat_seq = 0;
  absl::Duration ttl;
};
struct SessionDown {};
struct Tick {};
using Input = std::variant<HelloDue, Granted, SessionDown, Tick>;

struct Decision {
  // Send a heartbeat (or the hello) with this seq at once; it counts as sent at `now`.
  std::optional<int64_t> send;
  // The end of the lease has moved to State.end.
  bool push_lease_end = false;
  // No lease: SIGKILL whatever runs. Said at every step while that is so.
  bool kill_ranks = false;
  // Half a lease without renewal: ask the witnesses, if there are any. Said once per heartbeat.
  bool ask_witnesses = false;
  // Step with Tick no later than this.
  absl::Duration wake_at;
};

Decision Step(State& state, const Input& input, absl::Duration now);

// May ranks run, or be started, at `now`?
bool MayRun(const State& state, absl::Duration now);

}  // namespace mega::lease
