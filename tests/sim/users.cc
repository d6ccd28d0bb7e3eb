#include "tests/sim/users.h"

#include <iterator>
#include <utility>

namespace mega::sim {

void Users::Plan(absl::Duration end) {
  if (!rng_.Chance(0.4)) return;
  const int64_t requests = rng_.Between(1, 20);
  for (int64_t i = 0; i < requests; ++i) {
    world_.At(rng_.Between(absl::Seconds(10), end), [this] { Ask(); });
  }
}

// They know of jobs and checkpoints what is durable.
void Users::Ask() {
  const auto& jobs = coordinator_.stored().durable.jobs;
  if (jobs.empty()) return;
  const v1::Job& job = std::next(jobs.begin(), rng_.Below(std::ssize(jobs)))->second;
  if (job.checkpoints().empty()) return;
  const int64_t step = job.checkpoints(static_cast<int>(rng_.Below(job.checkpoints_size()))).step();
  v1::CoreRequest request;
  request.set_uid(job.uid());
  switch (rng_.Below(6)) {
    case 0:
    case 1:
      request.mutable_restart_job()->set_from_step(step);
      break;
    case 2:
      request.mutable_restart_job()->set_from_beginning(true);
      break;
    case 3:
      request.mutable_pin_checkpoint()->set_step(step);
      request.mutable_pin_checkpoint()->set_pinned(rng_.Chance(0.6));
      break;
    default:
      request.mutable_delete_checkpoint()->set_step(step);
      request.mutable_delete_checkpoint()->set_force(rng_.Chance(0.5));
  }
  world_.Trace("a user asks: {}", request.ShortDebugString());
  coordinator_.Ask(std::move(request), [](const v1::ReplyCall&) {});
}

}  // namespace mega::sim
