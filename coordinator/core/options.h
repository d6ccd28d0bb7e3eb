// What an operator may set of the core. Constant after construction of the State.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace mega::core {

struct Options {
  absl::Duration heartbeat = absl::Seconds(1);  // workers send one this often
  absl::Duration suspect = absl::Seconds(3);    // without renewal: nothing new is placed there
  absl::Duration lease = absl::Seconds(10);     // a worker ends its ranks this long after a renewal
  absl::Duration skew = absl::Seconds(1);       // what clocks and the killing itself may cost
  absl::Duration outage_grace = absl::Minutes(30);  // a coordinator outage costs no step

  absl::Duration cancel_grace = absl::Seconds(10);  // SIGTERM to SIGKILL of a cancelled job
  absl::Duration stop_again = absl::Seconds(30);    // a rank that will not end is told again
  absl::Duration plan_timeout = absl::Seconds(60);  // an unanswered AskPlan is asked again
  absl::Duration backoff_min = absl::Seconds(1);    // before the second restart without progress
  absl::Duration backoff_max = absl::Seconds(60);

  absl::Duration job_retention = absl::Hours(24 * 30);  // an ended job is forgotten after it
  int64_t most_ended_jobs = 10'000;                     // and the oldest beyond these
  absl::Duration node_retention = absl::Hours(24);      // a lost node is forgotten after it
  int64_t most_kept_bytes = 256 << 20;  // of the manifests that a job keeps (jobs/kept.h)

  // Deliberate bugs, for the simulator: each must be caught by its invariants. All off otherwise.
  struct Mutants {
    bool skip_fence = false;          // an attempt counts as ended while its ranks may still live
    bool give_lease_early = false;    // a node's ranks count as dead once it is merely suspect
    bool accept_stale_epoch = false;  // messages of earlier attempts are believed

    // The queue (queue/).
    bool ignore_priority = false;  // first come, first served
    bool partial_gang = false;     // one rank fewer is enough
    bool ignore_quota = false;     // a namespace holds what it can get
    bool preempt_equals = false;   // jobs of the same priority yield, too
    bool unfit_blocks = false;     // others wait for a job that no waiting helps

    // One for each clause of the lease and witness rule (nodes/).
    bool no_skew = false;                // horizons end without the skew
    bool ignore_witnesses = false;       // lease + skew is the end, whoever was in session
    bool grace_cut_short = false;        // half of the outage grace is enough
    bool one_witness_is_enough = false;  // where a majority is asked for
    bool newest_set_only = false;        // older sets that the node may hold do not count
    bool empty_set_is_majority = false;
    bool set_before_durable = false;    // a set leaves at once
    bool renewals_need_no_ack = false;  // in session while it sends heartbeats
    bool gaps_forgiven = false;         // in session now is in session throughout
    bool start_not_counted = false;     // horizons do not count afresh from the start
    bool pause_not_counted = false;     // nor from a pause of the loop
    bool any_hello_is_proof = false;    // also of another machine with the same name
    bool forget_unwanted = false;       // devices are free though ranks run there unasked
    bool relay_revives = false;         // a relayed heartbeat renews a node given away

    // Of the hang verdict (health/).
    bool no_hang_verdict = false;  // what stands still may stand for ever
    bool silence_is_hang = false;  // also while a worker cannot speak
    bool pause_is_hang = false;    // or the core did not listen
    bool blames_another = false;   // the wrong rank is named

    // Of going back to an older checkpoint (recovery/roll_back.h).
    bool save_after_roll_back = false;  // what is saved meanwhile is a checkpoint all the same
    bool reject_settled = false;        // and what was a checkpoint is taken back

    // Of removals (jobs/removal.h).
    bool remove_of_anybody = false;  // an order does not say whose checkpoint it means

    // Of the ledger (jobs/goodput.h).
    bool end_uncharged = false;  // a job's last span has no cause
  } mutants;
};

}  // namespace mega::core
