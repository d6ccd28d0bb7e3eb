#include "tests/sim/client.h"

#include <utility>

namespace mega::sim {

Client::Client(World& world, Coordinator& coordinator, Invariants& invariants, std::string name,
               int64_t ranks, int64_t steps)
    : world_(world), coordinator_(coordinator), invariants_(invariants), is_steady_(steps > 0) {
  submit_.set_request_id("request-" + name);
  submit_.mutable_metadata()->set_name(name);
  v1::JobSpec& spec = *submit_.mutable_resolved_spec();
  spec.mutable_parallelism()->set_data_parallel_size(ranks);
  spec.mutable_training()->set_steps(is_steady_ ? steps : world_.rng.Between(3, 400));
  spec.mutable_recovery()->set_no_progress_cycles(world_.rng.Between(3, 10));
  spec.mutable_checkpoint()->set_keep(world_.rng.Between(1, 3));
  *submit_.mutable_spec() = spec;
}

void Client::Start() {
  const absl::Duration latest = absl::Seconds(is_steady_ ? 5 : 90);
  world_.At(world_.rng.Between(absl::ZeroDuration(), latest), [this] { Submit(); });
}

// The uid is drawn anew by each call, as the shell does; only the request id makes it one job.
void Client::Submit() {
  if (!uid_.empty()) return;
  const int copies = world_.rng.Chance(0.3) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    submit_.set_uid(fmt::format("{}-{}", submit_.metadata().name(), ++uids_));
    coordinator_.Submit(submit_, [this](const v1::ReplyCall& reply) {
      if (reply.code() != 0) return world_.Fail("submit was refused: {}", reply.message());
      invariants_.OnAcked(coordinator_.stored(), submit_.request_id(), reply.job().uid());
      if (!uid_.empty() || world_.rng.Chance(0.1)) return;  // the answer was lost on its way
      uid_ = reply.job().uid();
      if (is_steady_ || world_.rng.Chance(0.8)) {
        is_done_ = true;
        return;
      }
      world_.After(world_.rng.Between(absl::ZeroDuration(), absl::Seconds(60)),
                   [this] { Cancel(); });
    });
  }
  world_.After(absl::Seconds(2), [this] { Submit(); });
}

void Client::Cancel() {
  if (is_done_) return;
  v1::CoreCancel cancel;
  cancel.set_uid(uid_);
  // Refused only when it has ended already; both are an answer.
  coordinator_.Cancel(std::move(cancel), [this](const v1::ReplyCall&) { is_done_ = true; });
  world_.After(absl::Seconds(2), [this] { Cancel(); });
}

}  // namespace mega::sim
