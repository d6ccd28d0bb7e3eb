// What an engine process does: load, connect, step with its peers, save, end.
#include <algorithm>
#include <utility>

#include "tests/sim/coordinator.h"
#include "tests/sim/machine.h"

namespace mega::sim {

void Machine::Run(const EnginePtr& engine, absl::Duration span, std::function<void()> what) {
  world_.After(span, [this, engine, what = std::move(what)]() mutable {
    if (!engine->is_alive) return;
    if (!IsFrozen()) return what();
    Run(engine, machine_paused_until_ - world_.now(), std::move(what));
  });
}

// The engine's own timer: it leaves at the end of the lease that its worker pushed last, so that a
// stopped or dead worker cannot keep it alive.
void Machine::WatchLease(const EnginePtr& engine) {
  if (options_.lease.mutants.outlive_lease) return;
  const absl::Duration left = TrueTimeOf(engine->lease_end) - world_.now();
  if (left <= absl::ZeroDuration()) return End(engine, 1, 0, false);
  Run(engine, left, [this, engine] { WatchLease(engine); });
}

void Machine::Report(const EnginePtr& engine) {
  v1::WorkerMessage message;
  *message.mutable_rank_ready()->mutable_rank() = engine->ref;
  message.mutable_rank_ready()->set_address(name());
  Send(std::move(message));
}

void Machine::MakeReady(const EnginePtr& engine) {
  engine->is_ready = true;
  if (has_worker_ && worker_paused_until_ <= world_.now()) return Report(engine);
  Work(worker_paused_until_ - world_.now(), [this, engine] {
    if (engine->is_alive) Report(engine);
  });
}

void Machine::TellProgress(Engine& engine) {
  engine.is_told = true;
  v1::WorkerMessage message;
  v1::RankProgress& progress = *message.mutable_rank_progress();
  *progress.mutable_rank() = engine.ref;
  progress.set_phase("connecting");
  if (engine.collective > 0) {
    progress.set_phase("step");
    progress.set_step(engine.step + 1);
    progress.set_group("dp");
    progress.set_collective_seq(engine.collective);
  }
  Send(std::move(message));
}

void Machine::TakeStep(const EnginePtr& engine) {
  if (engine->is_stuck) return;
  if (engine->collective != engine->step + 1) {
    engine->collective = engine->step + 1;
    engine->is_told = false;
    invariants_.OnMoved(*engine);
  }
  // The one that is stuck never joins the next collective; the others wait in it.
  if (engine->step >= invariants_.NewestStepPossible(*engine)) {
    return Run(engine, absl::Milliseconds(100), [this, engine] { TakeStep(engine); });
  }
  if (invariants_.IsPeerDead(*engine)) {
    // A collective that cannot end: an error, or a hang until somebody stops it.
    if (world_.rng.Chance(0.7)) End(engine, 1, 0, false);
    return;
  }
  engine->step += 1;
  v1::StepReport report;
  report.set_job_uid(engine->ref.job_uid());
  report.set_attempt(engine->ref.attempt());
  report.set_epoch(engine->ref.epoch());
  report.set_rank(engine->ref.rank());
  report.set_step(engine->step);
  report.set_loss(1.0 / static_cast<double>(engine->step));
  const bool is_held = up_held_until > world_.now();
  world_.After(is_held ? up_held_until - world_.now() : absl::Milliseconds(1),
               [this, report] { coordinator_.OnStepReport(report); });
  const bool is_last = engine->step >= engine->order.plan().steps();
  if (is_last || engine->step % options_.checkpoint_interval == 0) Save(engine);
  if (is_last) {
    Run(engine, absl::Milliseconds(20), [this, engine] {
      engine->is_finished = true;
      End(engine, 0, 0, false);
    });
    return;
  }
  Run(engine, world_.rng.Between(absl::Milliseconds(100), absl::Milliseconds(400)),
      [this, engine] { TakeStep(engine); });
}

void Machine::Save(const EnginePtr& engine) {
  v1::CheckpointPart part;
  part.set_job_uid(engine->ref.job_uid());
  part.set_attempt(engine->ref.attempt());
  part.set_epoch(engine->ref.epoch());
  part.set_rank(engine->ref.rank());
  part.set_step(engine->step);
  part.set_directory("/checkpoints/" + std::to_string(engine->step));
  v1::TensorInfo& tensor = *part.add_tensors();
  tensor.set_name("weight");
  tensor.add_global_shape(engine->order.plan().world_size());
  tensor.add_global_shape(4);
  tensor.set_dtype("F32");
  v1::CheckpointFile& file = *part.add_files();
  file.set_name(fmt::format("rank{}.safetensors", engine->ref.rank()));
  file.set_bytes(16);
  v1::TensorSlice& slice = *part.add_slices();
  slice.set_tensor("weight");
  slice.add_offset(engine->ref.rank());
  slice.add_offset(0);
  slice.add_shape(1);
  slice.add_shape(4);
  slice.set_file(file.name());
  part.mutable_state()->set_step(engine->step);
  invariants_.OnPartWritten(part);
  if (!has_worker_) return;
  const RankKey key = {part.job_uid(), part.attempt(), part.epoch(), part.rank()};
  parts_[{key, part.step()}] = part;
  v1::WorkerMessage message;
  *message.mutable_checkpoint_part() = std::move(part);
  Send(std::move(message));
}

void Machine::End(const EnginePtr& engine, int code, int signal, bool killed_by_worker) {
  if (!engine->is_alive) return;
  engine->is_alive = false;
  world_.Trace("{}: rank {} of {} epoch {} ends: {}:{}", name(), engine->ref.rank(),
               engine->ref.job_uid(), engine->ref.epoch(), code, signal);
  if (deaths_held_until_ <= world_.now()) return Reap(engine, code, signal, killed_by_worker);
  engine->is_dying = true;
  world_.At(deaths_held_until_, [=, this] {
    if (engine->is_dying) Reap(engine, code, signal, killed_by_worker);
  });
}

void Machine::Reap(const EnginePtr& engine, int code, int signal, bool killed_by_worker) {
  engine->is_dying = false;
  const RankKey key = {engine->ref.job_uid(), engine->ref.attempt(), engine->ref.epoch(),
                       engine->ref.rank()};
  engines_.erase(key);
  if (!has_worker_) return;  // nobody waits for the pid
  const auto tell = [this, key, engine, code, signal, killed_by_worker] {
    v1::RankExited exited;
    *exited.mutable_rank() = engine->ref;
    exited.mutable_exit()->set_code(code);
    exited.mutable_exit()->set_signal(signal);
    exited.mutable_exit()->set_killed_by_worker(killed_by_worker);
    exited_[key] = exited;  // durable
    v1::WorkerMessage message;
    *message.mutable_rank_exited() = std::move(exited);
    Send(std::move(message));
  };
  if (worker_paused_until_ <= world_.now()) return tell();
  Work(worker_paused_until_ - world_.now(), tell);
}

void Machine::KillEngine() {
  if (engines_.empty() || IsFrozen()) return;
  auto chosen = std::next(engines_.begin(), world_.rng.Below(std::ssize(engines_)));
  const EnginePtr engine = chosen->second;
  const bool is_permanent = world_.rng.Chance(options_.permanent_exit_chance);
  End(engine, is_permanent ? 93 : 0, is_permanent ? 0 : 9, false);
}

void Machine::StickEngine() {
  if (engines_.empty() || IsFrozen()) return;
  auto chosen = std::next(engines_.begin(), world_.rng.Below(std::ssize(engines_)));
  world_.Trace("{}: rank {} of {} is stuck", name(), chosen->second->ref.rank(),
               chosen->second->ref.job_uid());
  chosen->second->is_stuck = true;
}

}  // namespace mega::sim
