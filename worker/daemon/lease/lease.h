// The worker's half of the lease, as one pure function: when heartbeats leave, until when ranks may
// run, and that they end when nobody renews and no majority of witnesses says that the coordinator
// is away. The other half is coordinator/core/nodes; docs/invariants.md has the whole rule.
//
// Times are CLOCK_BOOTTIME of this machine. A lease runs from when its owner *sent* the heartbeat
// that was answered, so neither the network's delay nor the other clock matters.
//
//   daemon                                        lease::Step
//   stream is open                    HelloDue  → send = seq: goes into Hello.heartbeat_seq
//   a Lease came, or was relayed      Granted   → push_lease_end: tell every engine; acks
//   stream is gone                    SessionDown
//   at wake_at, and after each wait   Tick      → send = seq (Heartbeat{seq}), kill_ranks, …
//   a witness has answered            Answered  → push_lease_end, if it completes a majority
//
// A rank is started only while MayRun. A StartRanks that comes later is not acked: drop the session
// and say hello again, so that it is sent again or withdrawn.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "mega/v1/cluster.pb.h"

namespace mega::lease {

struct Options {
  absl::Duration heartbeat = absl::Seconds(1);
  absl::Duration skew = absl::Seconds(1);  // what clocks may differ over a lease
  // A longer grant is cut to this; nobody hands out such leases.
  absl::Duration longest = absl::Hours(1);
  absl::Duration longest_grace = absl::Hours(24);

  // Deliberate bugs for the simulator, one for each clause. All off otherwise.
  struct Mutants {
    bool outlive_lease = false;            // ranks outlive the lease
    bool lease_from_answer = false;        // it runs from when the answer came
    bool run_on_without_majority = false;  // one witness is enough
    bool run_on_from_answer = false;       // a lease from the answer, not from the asking
    bool no_outage_grace = false;          // run on for ever
    bool keep_old_set = false;             // acks a new set and goes on asking the old one
    bool old_answers_count = false;        // answers for an earlier set count for the next
    bool any_process_answers = false;      // also another incarnation of a witness
    bool eager_witness = false;            // says "no session" when only its stream is down
  } mutants;
};

// One asking of the witnesses: named by the heartbeat that left with it.
struct Round {
  absl::Duration asked;
  std::set<std::string> no_session;  // who said so
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
  absl::Duration outage_grace;                   // of it
  absl::Duration direct_ttl;                     // of the newest that came in a session
  absl::Duration direct_grace;
  absl::Duration end;                   // ranks may run until then
  std::optional<absl::Duration> heard;  // when the newest renewal came

  mega::v1::WitnessSet witnesses;        // number 0: none was ever named
  std::map<int64_t, Round> rounds;       // of this set, the newest 16; by seq
  std::optional<absl::Duration> outage;  // newest asking in which a majority had no session
};

struct HelloDue {};
struct Granted {
  int64_t heartbeat_seq = 0;
  absl::Duration ttl;
  absl::Duration outage_grace;
  mega::v1::WitnessSet witnesses;  // number 0: as before
  bool is_relayed = false;         // by a witness; then there is nobody to ack to
};
struct SessionDown {};
struct Tick {};
struct Answered {
  int64_t round = 0;
  std::string node;         // who answers
  int64_t incarnation = 0;  // of it
  bool no_session = false;
};
using Input = std::variant<HelloDue, Granted, SessionDown, Tick, Answered>;

struct Decision {
  // Send a heartbeat (or the hello) with this seq at once; it counts as sent at `now`.
  std::optional<int64_t> send;
  // The end of the lease has moved to State.end.
  bool push_lease_end = false;
  // No lease: SIGKILL whatever runs. Said at every step while that is so.
  bool kill_ranks = false;
  // Half a lease without renewal: ask every witness of State.witnesses whether it has a session,
  // and those that have to relay this heartbeat. Said once per heartbeat.
  std::optional<int64_t> ask_witnesses;
  std::optional<int64_t> ack_renewal;    // heartbeat seq
  std::optional<int64_t> ack_witnesses;  // number of the set that is held
  // Step with Tick no later than this.
  absl::Duration wake_at;
};

Decision Step(State& state, const Input& input, absl::Duration now);

// May ranks run, or be started, at `now`?
bool MayRun(const State& state, absl::Duration now);

// What this worker says as a witness: it has had no renewal for half a lease + skew. One that never
// had any does not say so; it is in nobody's set, for those named have acked a renewal.
bool HasNoSession(const State& state, absl::Duration now);
// From when on it says so, if no renewal comes.
absl::Duration NoSessionFrom(const State& state);

}  // namespace mega::lease
