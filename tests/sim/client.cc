#include "tests/sim/client.h"

#include <memory>
#include <utility>

namespace mega::sim {

Client::Client(World& world, Coordinator& coordinator, Invariants& invariants, Options options)
    : world_(world),
      coordinator_(coordinator),
      invariants_(invariants),
      submit_at_(options.submit),
      is_steady_(options.steps > 0),
      is_hopeless_(options.is_hopeless) {
  submit_.set_request_id("request-" + options.name);
  submit_.mutable_metadata()->set_name(options.name);
  submit_.mutable_metadata()->set_namespace_(options.name_space);
  v1::JobSpec& spec = *submit_.mutable_resolved_spec();
  *spec.mutable_scheduling() = options.scheduling;
  spec.mutable_parallelism()->set_data_parallel_size(options.ranks);
  spec.mutable_training()->set_steps(is_steady_ ? options.steps : world_.rng.Between(3, 400));
  spec.mutable_recovery()->set_no_progress_cycles(world_.rng.Between(3, 10));
  spec.mutable_checkpoint()->set_keep(world_.rng.Between(1, 3));
  v1::HangRule& hang = *spec.mutable_health()->mutable_hang();
  hang.mutable_first_step_timeout()->set_seconds(120);
  if (world_.rng.Chance(0.7)) {
    hang.mutable_step_timeout()->set_seconds(world_.rng.Between(kShortestHang, 60));
  }
  *submit_.mutable_spec() = spec;
}

void Client::Start() {
  const absl::Duration latest = absl::Seconds(is_steady_ ? 5 : 90);
  const absl::Duration chosen = world_.rng.Between(absl::ZeroDuration(), latest);
  world_.At(submit_at_.value_or(chosen), [this] { Submit(); });
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
      if (is_hopeless_) return GiveUpWhenAlone();
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

void Client::GiveUpWhenAlone() {
  const auto& unfinished = coordinator_.stored().index.unfinished;
  if (world_.now() > absl::Seconds(120) && unfinished.size() == 1 && unfinished.contains(uid_)) {
    return Cancel();
  }
  world_.After(absl::Seconds(5), [this] { GiveUpWhenAlone(); });
}

void Client::Cancel() {
  if (is_done_) return;
  v1::CoreCancel cancel;
  cancel.set_uid(uid_);
  // Refused only when it has ended already; both are an answer.
  coordinator_.Cancel(std::move(cancel), [this](const v1::ReplyCall&) { is_done_ = true; });
  world_.After(absl::Seconds(2), [this] { Cancel(); });
}

void Operator::SetLimits(absl::Duration when, v1::Namespace limits) {
  world_.At(when, [this, limits = std::move(limits)] {
    const auto is_done = std::make_shared<bool>(false);
    const auto ask = std::make_shared<std::function<void()>>();
    *ask = [this, limits, is_done, weak = std::weak_ptr(ask)] {
      if (*is_done) return;
      v1::CoreRequest request;
      *request.mutable_update_namespace()->mutable_namespace_() = limits;
      coordinator_.Ask(std::move(request), [is_done](const v1::ReplyCall&) { *is_done = true; });
      if (const auto again = weak.lock()) world_.After(absl::Seconds(2), [again] { (*again)(); });
    };
    (*ask)();
  });
}

}  // namespace mega::sim
