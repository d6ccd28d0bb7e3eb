// What holds for the queue: who starts, and who gives way.
#include <algorithm>

#include "coordinator/core/jobs/attempt.h"
#include "tests/sim/invariants.h"

namespace mega::sim {
namespace {

int64_t Priority(const v1::Job& job) { return job.resolved_spec().scheduling().priority(); }
int64_t Ranks(const v1::Job& job) { return job.resolved_spec().parallelism().data_parallel_size(); }

int64_t Held(const core::State& state, const std::string& name_space) {
  int64_t held = 0;
  for (const core::JobUid& uid : state.index.unfinished) {
    const v1::Job& job = state.durable.jobs.at(uid);
    const v1::Attempt* attempt = core::LiveAttempt(job);
    if (attempt == nullptr || job.metadata().namespace_() != name_space) continue;
    held += attempt->ranks_size();
  }
  return held;
}

// What its namespace may hold; very much without a limit.
int64_t Quota(const core::State& state, const v1::Job& job) {
  const auto limits = state.durable.namespaces.find(job.metadata().namespace_());
  const bool is_limited =
      limits != state.durable.namespaces.end() && limits->second.max_devices() > 0;
  return is_limited ? limits->second.max_devices() : INT64_MAX;
}

// A job whose fleet was too small is looked at again soon, but its plan may come late.
constexpr absl::Duration kUnfitForgotten = absl::Minutes(2);

}  // namespace

void Invariants::NoteUnfit(const core::State& state) {
  int64_t fleet = 0;
  for (const auto& [id, node] : state.durable.nodes) {
    if (node.state() == v1::NODE_STATE_READY) fleet += node.devices_size();
  }
  for (const auto& key : state.index.queue) {
    const core::JobUid& uid = std::get<core::JobUid>(key);
    if (Ranks(state.durable.jobs.at(uid)) > fleet) unfit_[uid] = world_.now();
  }
}

// A new attempt: whoever waits before it cannot be helped by waiting, and its namespace may hold
// it.
void Invariants::CheckStart(const core::State& state, const v1::Job& job) {
  if (core::LiveAttempt(job) == nullptr) return;
  const v1::Attempt& attempt = *job.attempts().rbegin();
  if (!begun_.insert({job.uid(), attempt.number()}).second) return;
  const int64_t held = Held(state, job.metadata().namespace_());
  if (held > Quota(state, job)) {
    world_.Fail("namespace {} holds {} devices of {} after the start of job {}",
                job.metadata().namespace_(), held, Quota(state, job), job.uid());
  }
  const auto place = [](const v1::Job& of, bool is_recovering) {
    return std::tuple(-Priority(of), is_recovering ? 0 : 1, of.create_time().seconds(),
                      of.create_time().nanos(), of.uid());
  };
  for (const core::JobUid& uid : state.index.unfinished) {
    const v1::Job& other = state.durable.jobs.at(uid);
    if (!core::IsQueued(other) || place(other, other.phase() == v1::JOB_PHASE_RECOVERING) >=
                                      place(job, attempt.number() > 1)) {
      continue;
    }
    const int64_t others = Held(state, other.metadata().namespace_());
    if (Ranks(other) > Quota(state, other) - others) continue;
    const auto unfit = unfit_.find(uid);
    if (unfit != unfit_.end() && world_.now() - unfit->second < kUnfitForgotten) continue;
    world_.Fail("job {} starts before job {}, which stands before it and waits: {}", job.uid(), uid,
                other.reason());
  }
}

// Devices are taken only from who stands lower than somebody who waits, and may be taken from.
void Invariants::CheckYield(const core::State& state, const v1::Job& job) {
  const v1::Attempt* attempt = core::LiveAttempt(job);
  if (attempt == nullptr || !attempt->cause().starts_with("preempted by") ||
      !yielded_.insert({job.uid(), attempt->number()}).second) {
    return;
  }
  const bool is_for_higher = std::ranges::any_of(state.index.queue, [&](const auto& key) {
    return Priority(state.durable.jobs.at(std::get<core::JobUid>(key))) > Priority(job);
  });
  const v1::Scheduling& scheduling = job.resolved_spec().scheduling();
  if (!is_for_higher || (scheduling.has_preemptible() && !scheduling.preemptible())) {
    world_.Fail("job {} of priority {} is {}", job.uid(), Priority(job), attempt->cause());
  }
}

}  // namespace mega::sim
