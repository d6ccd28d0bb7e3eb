// The order of a step, and who owns each line:
//   data        feed_.Read                     tokens and labels of this rank's micro-batches
//   executor    the schedule's actions         forward, backward; a full bucket starts its
//   reduction grads       Finish                         waits for what is still on the wire
//   optimizer   Step                           clip by the global norm, AdamW
//   link        StepReport                     queued; another thread writes it
//   checkpoint  every n steps                  snapshot now, files in the background
#include "worker/engine/main/rank.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "base/log.h"
#include "coordinator/planner/layout/rank_mesh.h"
#include "coordinator/planner/model/model_spec.h"
#include "coordinator/planner/spec/spec.h"
#include "kernels/elementwise.h"
#include "worker/engine/distributed/grad_buffer.h"
#include "worker/engine/main/batch_feed.h"
#include "worker/engine/main/checkpointer.h"
#include "worker/engine/main/network.h"
#include "worker/engine/main/progress.h"
#include "worker/engine/main/restore.h"
#include "worker/engine/models/decoder.h"
#include "worker/engine/optimizer/adamw.h"
#include "worker/engine/pipeline_parallel/executor.h"
#include "worker/engine/profiler/peak_flops.h"
#include "worker/engine/profiler/phase_timer.h"

namespace mega::engine {
namespace {

using profiler::Phase;

constexpr absl::Duration kCommitTimeout = absl::Seconds(60);
constexpr absl::Duration kRejectTimeout = absl::Seconds(5);
// How long a save may wait for the one before: steps of milliseconds meet disks of milliseconds,
// but no slow disk shall hold up training.
constexpr absl::Duration kSavePatience = absl::Seconds(2);
// The last save holds the only copy of what was trained, so it may take long; but a disk that never
// answers must end the rank some day.
constexpr absl::Duration kLastSaveTimeout = absl::Minutes(10);
// What the ranks need beyond that to tell each other.
constexpr absl::Duration kAgreeMargin = absl::Minutes(1);

// What one small collective adds up.
using Sums = std::array<double, 3>;

// Sum over all ranks, in double.
struct LossTotal {
  double loss_sum = 0;
  double tokens = 0;
  double mean() const { return tokens > 0 ? loss_sum / tokens : 0; }
};

class TrainingRank : public Rank {
 public:
  static absl::StatusOr<std::unique_ptr<Rank>> Build(const v1::StartTraining& start,
                                                     TrainerLink& link);
  absl::Status Run() override;
  void Abort(const absl::Status& why) override { network_->Abort(why); }

 private:
  TrainingRank(const v1::StartTraining& start, TrainerLink& link)
      : start_(start),
        link_(link),
        stream_(Device{}, static_cast<int>(start.plan().threads_per_device())),
        pool_(Device{}, start.spec().memory().efficient_fragmentation() != 0),
        totals_(pool_.Allocate(DType::kF64, Shape{std::tuple_size_v<Sums>}, Purpose::kComm)) {}

  absl::Status OpenData();
  absl::Status BuildModel();
  absl::Status CheckSharedFolder();
  absl::Status TrainStep(int64_t step);
  absl::Status ReduceStep();
  absl::StatusOr<double> Evaluate();
  // Over the data-parallel ranks; `mine` itself where there is one.
  absl::StatusOr<Sums> SumOverRanks(Sums mine);
  // Whether `mine` is true on all ranks.
  absl::StatusOr<bool> AllAgree(bool mine);
  void Report(int64_t step, double step_seconds);
  absl::Status Save(int64_t step);
  // From here on the other ranks may be busy with their disks.
  void AllowForLastSave();
  absl::Status FinishSaving();

  const v1::StartTraining start_;
  TrainerLink& link_;
  Stream stream_;
  Pool pool_;
  Tensor totals_;
  planner::ModelSpec model_spec_;
  planner::Coords coords_;
  double peak_flops_ = 0;

  std::optional<datasets::SampleSource> train_data_, validation_data_;
  std::optional<BatchFeed> feed_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<models::Decoder> model_;
  std::unique_ptr<distributed::GradBuffer> grads_;
  std::unique_ptr<optimizer::AdamW> optimizer_;
  profiler::PhaseTimer timer_;
  std::unique_ptr<pipeline_parallel::Executor> executor_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<ProgressReporter> progress_;  // reads the network's sequence

  v1::TrainerState state_;  // after the last completed step
  v1::StepReport report_;   // of the step under way
  LossTotal step_loss_;
  bool save_wanted_ = false;  // some rank was asked to save after this step
  int64_t reported_bytes_ = 0;
};

absl::Status TrainingRank::OpenData() {
  const v1::JobSpec& spec = start_.spec();
  MEGA_ASSIGN_OR_RETURN(model_spec_, planner::MakeModelSpec(spec));
  MEGA_ASSIGN_OR_RETURN(
      const planner::RankMesh mesh,
      planner::RankMesh::Make(start_.plan().layout(), start_.plan().world_size()));
  coords_ = mesh.CoordsOf(start_.rank().rank());
  const BatchShape shape{.global_batch_size = spec.training().global_batch_size(),
                         .micro_batch_size = start_.plan().layout().micro_batch_size(),
                         .seq_length = spec.data().seq_length(),
                         .dp_rank = coords_.dp,
                         .dp_size = start_.plan().layout().data_parallel_size()};
  MEGA_ASSIGN_OR_RETURN(feed_, BatchFeed::Make(shape, pool_, stream_));
  const auto open = [&](datasets::Split split) {
    return datasets::SampleSource::Open(spec.data(), start_.run_directory() + "/data", split,
                                        spec.training().seed(), model_spec_.vocab_size);
  };
  MEGA_ASSIGN_OR_RETURN(train_data_, open(datasets::Split::kTrain));
  if (spec.training().eval_steps() > 0) {
    absl::StatusOr<datasets::SampleSource> validation = open(datasets::Split::kValidation);
    if (absl::IsOutOfRange(validation.status()) && !spec::AsksForEvaluation(spec)) {
      log::Warn("no evaluation: the text for it is too short",
                {{"error", std::string(validation.status().message())}});
    } else {
      MEGA_ASSIGN_OR_RETURN(validation_data_, std::move(validation));
    }
  }
  MEGA_ASSIGN_OR_RETURN(network_, Network::Connect(start_, mesh, link_));
  return absl::OkStatus();
}

absl::Status TrainingRank::BuildModel() {
  const v1::JobSpec& spec = start_.spec();
  MEGA_ASSIGN_OR_RETURN(model_,
                        models::Decoder::Make(model_spec_, models::StageSlice{}, pool_, stream_));
  MEGA_ASSIGN_OR_RETURN(
      grads_, distributed::GradBuffer::Make(
                  pool_, model_->parameters(), spec.communication().grad_buffer_size(),
                  network_->groups().data.get(), spec.communication().overlap_grad_reduce()));
  model_->set_grad_ready_hook(
      [this](const distributed::Parameter& parameter) { grads_->MarkReady(parameter, stream_); });
  MEGA_ASSIGN_OR_RETURN(auto optimizer,
                        optimizer::AdamW::Make(spec.optimizer(), start_.plan().steps(),
                                               model_->parameters(), pool_, stream_));
  optimizer_ = std::make_unique<optimizer::AdamW>(std::move(optimizer));
  executor_ = std::make_unique<pipeline_parallel::Executor>(*model_, start_.plan().schedule(),
                                                            coords_.pp, nullptr, timer_);
  MEGA_ASSIGN_OR_RETURN(state_, Restore(start_, *model_, *optimizer_));
  checkpointer_ = std::make_unique<Checkpointer>(start_, coords_.dp, *model_, *optimizer_, pool_,
                                                 stream_, link_);
  checkpointer_->RemoveLeftovers();
  // A job whose saves cannot work shall not find out after many steps.
  if (checkpointer_->Saves()) MEGA_RETURN_IF_ERROR(checkpointer_->MakeFolder());
  if (checkpointer_->MustSucceed(start_.plan().steps())) {
    MEGA_RETURN_IF_ERROR(checkpointer_->Prepare(absl::ZeroDuration()));
  }
  if (checkpointer_->NeedsSharedFolder()) MEGA_RETURN_IF_ERROR(checkpointer_->LeaveMark());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Rank>> TrainingRank::Build(const v1::StartTraining& start,
                                                          TrainerLink& link) {
  auto rank = std::unique_ptr<TrainingRank>(new TrainingRank(start, link));
  SendProgress(link, "data", 0);
  MEGA_RETURN_IF_ERROR(rank->OpenData());
  SendProgress(link, "loading", 0);
  MEGA_RETURN_IF_ERROR(rank->BuildModel());
  rank->peak_flops_ = profiler::MeasurePeakFlops(rank->stream_);
  return absl::StatusOr<std::unique_ptr<Rank>>(std::move(rank));
}

absl::StatusOr<Sums> TrainingRank::SumOverRanks(Sums mine) {
  if (network_->groups().data) {
    const TensorView on_host(mine.data(), DType::kF64, totals_.shape());
    kernels::Copy(stream_, on_host, totals_);
    MEGA_RETURN_IF_ERROR(
        network_->groups().data->AllReduce(totals_, distributed::ReduceOp::kSum, stream_).Wait());
    kernels::Copy(stream_, totals_, on_host);
    stream_.Synchronize();
  }
  return mine;
}

absl::StatusOr<bool> TrainingRank::AllAgree(bool mine) {
  MEGA_ASSIGN_OR_RETURN(const Sums against, SumOverRanks({mine ? 0.0 : 1.0}));
  return against[0] == 0;
}

absl::Status TrainingRank::TrainStep(int64_t step) {
  const double nominal_tokens = static_cast<double>(start_.spec().training().global_batch_size() *
                                                    start_.spec().data().seq_length());
  report_.Clear();
  std::span<const transformer::MicroBatch> batch;
  {
    const auto time = timer_.In(Phase::kData);
    MEGA_ASSIGN_OR_RETURN(batch, feed_->Read(*train_data_, state_.consumed_samples()));
  }
  grads_->Zero(stream_);
  // The unmasked tokens of the whole batch are known only when all ranks have counted; the gradient
  // is made for the nominal number, and the optimizer puts that right.
  model_->set_loss_scale(static_cast<float>(1 / nominal_tokens));
  return executor_->RunStep(
      batch, {.reduce_grads =
                  [&] {
                    MEGA_RETURN_IF_ERROR(grads_->Finish(stream_));
                    return ReduceStep();
                  },
              .step =
                  [&] {
                    MEGA_ASSIGN_OR_RETURN(
                        const optimizer::StepResult result,
                        optimizer_->Step(step, nominal_tokens / std::max(1.0, step_loss_.tokens)));
                    report_.set_grad_norm(result.grad_norm);
                    report_.set_lr(result.lr);
                    return absl::OkStatus();
                  }});
}

// The wish to save rides with the loss: it costs no collective of its own, and every rank learns in
// the same step that one of them was asked, however far apart the orders reached them.
absl::Status TrainingRank::ReduceStep() {
  const transformer::Loss mine = model_->TakeLoss();
  MEGA_ASSIGN_OR_RETURN(const Sums sums, SumOverRanks({mine.sum, static_cast<double>(mine.tokens),
                                                       link_.SaveRequested() ? 1.0 : 0.0}));
  step_loss_ = {sums[0], sums[1]};
  save_wanted_ = sums[2] > 0;
  return absl::OkStatus();
}

absl::StatusOr<double> TrainingRank::Evaluate() {
  const auto time = timer_.In(Phase::kEvaluate);
  profiler::PhaseTimer apart;  // the executor's own phases would be counted twice
  pipeline_parallel::Executor executor(*model_, start_.plan().schedule(), coords_.pp, nullptr,
                                       apart);
  const v1::Training& training = start_.spec().training();
  for (int64_t i = 0; i < training.eval_steps(); ++i) {
    MEGA_ASSIGN_OR_RETURN(const auto batch,
                          feed_->Read(*validation_data_, i * training.global_batch_size()));
    MEGA_RETURN_IF_ERROR(executor.RunForwardOnly(batch));
  }
  const transformer::Loss mine = model_->TakeLoss();
  MEGA_ASSIGN_OR_RETURN(const Sums sums,
                        SumOverRanks({mine.sum, static_cast<double>(mine.tokens)}));
  return LossTotal{sums[0], sums[1]}.mean();
}

void TrainingRank::Report(int64_t step, double step_seconds) {
  const double batch_tokens = step_loss_.tokens;
  report_.set_job_uid(start_.rank().job_uid());
  report_.set_attempt(start_.rank().attempt());
  report_.set_epoch(start_.rank().epoch());
  report_.set_rank(start_.rank().rank());
  report_.set_step(step);
  report_.set_total_steps(start_.plan().steps());
  report_.set_loss(step_loss_.mean());
  report_.set_step_seconds(step_seconds);
  report_.set_tokens_per_s(batch_tokens / step_seconds);
  report_.set_mfu(report_.tokens_per_s() * start_.plan().flops_per_token() /
                  (peak_flops_ * static_cast<double>(start_.plan().world_size())));
  const profiler::PhaseTimer::Seconds seconds = timer_.Take();
  v1::PhaseSeconds& phases = *report_.mutable_seconds();
  phases.set_data(seconds[static_cast<int>(Phase::kData)]);
  phases.set_forward(seconds[static_cast<int>(Phase::kForward)]);
  phases.set_backward(seconds[static_cast<int>(Phase::kBackward)]);
  phases.set_reduce_exposed(seconds[static_cast<int>(Phase::kReduceExposed)]);
  phases.set_optimizer(seconds[static_cast<int>(Phase::kOptimizer)]);
  phases.set_evaluate(seconds[static_cast<int>(Phase::kEvaluate)]);
  if (network_->groups().data) {
    const int64_t sent = network_->groups().data->bytes_sent();
    report_.mutable_bytes()->set_all_reduce(sent - reported_bytes_);
    reported_bytes_ = sent;
  }
  report_.set_consumed_tokens(state_.consumed_tokens());
  report_.set_memory_bytes(pool_.Total().peak_bytes);
  *report_.mutable_time() = ToProto(SystemClock().WallNow());
  v1::EngineMessage message;
  *message.mutable_step() = report_;
  link_.Send(std::move(message));
}

// After all ranks have come: rank 0's mark is there. They end together, with the same verdict.
absl::Status TrainingRank::CheckSharedFolder() {
  if (!checkpointer_->NeedsSharedFolder()) return absl::OkStatus();
  MEGA_ASSIGN_OR_RETURN(const Sums missing, SumOverRanks({checkpointer_->SeesMark() ? 0.0 : 1.0}));
  return checkpointer_->JudgeMark(static_cast<int64_t>(missing[0]));
}

absl::Status TrainingRank::Run() {
  const v1::Training& training = start_.spec().training();
  const int64_t steps = start_.plan().steps();
  if (state_.step() >= steps) {
    log::Info("nothing left to train", {{"step", state_.step()}, {"steps", steps}});
  }
  MEGA_RETURN_IF_ERROR(network_->AwaitAll(stream_));
  MEGA_RETURN_IF_ERROR(CheckSharedFolder());
  checkpointer_->HearVerdicts();  // what the job keeps was told before where the peers are
  progress_ = std::make_unique<ProgressReporter>(link_, network_->groups().data.get(), "dp");
  for (int64_t step = state_.step() + 1; step <= steps; ++step) {
    progress_->Set("step", step);
    if (link_.StopRequested()) return absl::CancelledError("the worker asked the rank to stop");
    const auto begin = std::chrono::steady_clock::now();
    MEGA_RETURN_IF_ERROR(TrainStep(step));
    const double step_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    state_.set_step(step);
    state_.set_consumed_samples(state_.consumed_samples() + training.global_batch_size());
    state_.set_consumed_tokens(state_.consumed_tokens() + static_cast<int64_t>(step_loss_.tokens));
    const bool is_last = step == steps;
    if (validation_data_ &&
        (is_last || (training.eval_interval() > 0 && step % training.eval_interval() == 0))) {
      progress_->Set("evaluating", step);
      MEGA_ASSIGN_OR_RETURN(const double loss, Evaluate());
      state_.set_validation_loss(loss);
      state_.set_has_validation_loss(true);
      report_.set_validation_loss(loss);
    }
    if (checkpointer_->Due(step) || save_wanted_) MEGA_RETURN_IF_ERROR(Save(step));
    checkpointer_->HearVerdicts();
    Report(step, step_seconds);
  }
  return FinishSaving();
}

// All ranks or none: a part without the others' is no checkpoint.
absl::Status TrainingRank::Save(int64_t step) {
  const auto begin = std::chrono::steady_clock::now();
  const bool must_succeed = checkpointer_->MustSucceed(step);
  if (must_succeed) progress_->Set("saving", step);  // others wait no longer than for a step
  const absl::Status ready =
      checkpointer_->Prepare(must_succeed ? kLastSaveTimeout : kSavePatience);
  if (must_succeed) AllowForLastSave();
  const bool is_busy = absl::IsUnavailable(ready);
  MEGA_ASSIGN_OR_RETURN(const Sums against,
                        SumOverRanks({ready.ok() ? 0.0 : 1.0, ready.ok() || is_busy ? 0.0 : 1.0}));
  const bool all_ready = against[0] == 0;
  // A save that was asked for, and only waits for the one before it, is tried after the next step.
  if (all_ready || against[1] > 0) link_.SaveDone();
  if (all_ready) {
    checkpointer_->Save(step, state_);
  } else {
    checkpointer_->Skip(step, ready);
  }
  report_.set_checkpoint_stall_seconds(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return absl::OkStatus();
}

void TrainingRank::AllowForLastSave() {
  if (network_->groups().data) {
    network_->groups().data->set_timeout(kLastSaveTimeout + kAgreeMargin);
  }
}

absl::Status TrainingRank::FinishSaving() {
  const int64_t steps = start_.plan().steps();
  progress_->Set("saving", steps);
  const absl::Status saved = checkpointer_->FinishLastSave(kLastSaveTimeout);
  // No rank waits for a commit that cannot come because another one could not save.
  AllowForLastSave();
  MEGA_ASSIGN_OR_RETURN(const bool all_saved, AllAgree(saved.ok()));
  absl::Status accepted = saved.ok() && !all_saved
                              ? absl::UnavailableError("another rank could not save its part")
                              : saved;
  if (all_saved) {
    accepted = checkpointer_->WaitForCommit(kCommitTimeout);
  } else if (saved.ok()) {
    // Only so that what was written here does not stay: the coordinator says when nobody needs it.
    (void)checkpointer_->WaitForCommit(kRejectTimeout);
  }
  if (accepted.ok()) return absl::OkStatus();
  if (link_.StopRequested()) return accepted;  // what became of it matters to nobody here
  const std::string why = fmt::format(
      "the checkpoint of step {}, the last, was not saved and what was trained since the one "
      "before is lost: {}",
      steps, std::string(accepted.message()));
  if (!checkpointer_->MustSucceed(steps)) {
    log::Warn(why);
    return absl::OkStatus();
  }
  // A checkpoint that was rejected would be again: its parts do not fit together.
  return absl::IsDataLoss(accepted) ? absl::DataLossError(why) : absl::UnavailableError(why);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Rank>> Rank::Build(const v1::StartTraining& start,
                                                  TrainerLink& link) {
  return TrainingRank::Build(start, link);
}

}  // namespace mega::engine
