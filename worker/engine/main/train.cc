#include "worker/engine/main/train.h"

#include <signal.h>

#include "base/log.h"
#include "worker/engine/main/exit_codes.h"
#include "worker/engine/main/leave_within.h"
#include "worker/engine/main/rank.h"
#include "worker/engine/main/restore.h"
#include "worker/engine/main/stop_signal.h"

namespace mega::engine {
namespace {

// After its last words.
constexpr std::chrono::seconds kLeaveWithin(10);
// The same when it was asked to stop: a checkpoint under way is finished. The worker that asked has
// a grace of its own.
constexpr std::chrono::minutes kStopWithin(1);

absl::Status LiveAndTrain(TrainerLink& link, StopSignal& stop, std::unique_ptr<Rank>& rank) {
  MEGA_ASSIGN_OR_RETURN(const v1::StartTraining start, link.WaitForStart(absl::Seconds(30)));
  MEGA_ASSIGN_OR_RETURN(rank, Rank::Build(start, link));
  const absl::Status stopped =
      absl::CancelledError(fmt::format("rank {} was asked to stop", start.rank().rank()));
  const auto deferral = stop.Defer([&link] { link.RequestStop(); }, [&] { rank->Abort(stopped); });
  const absl::Status status = rank->Run();
  // The peers may be in a step that this rank does not take part in.
  if (!status.ok() && link.StopRequested()) rank->Abort(stopped);
  return status;
}

int ExitCodeOf(const absl::Status& status) {
  if (IsOutOfSight(status)) return kExitCheckpointOutOfSight;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return IsUnusableCheckpoint(status) ? kExitUnusableCheckpoint : kExitBadInput;
    default:
      return kExitFailed;
  }
}

absl::Status TrainToTheEnd(const TrainerLink::Options& options, StopSignal& stop) {
  SystemClock clock;
  auto link = std::make_unique<TrainerLink>(options, clock);
  std::unique_ptr<Rank> rank;
  const absl::Status status = LiveAndTrain(*link, stop, rank);
  const bool is_stopped = !status.ok() && link->StopRequested();
  v1::EngineMessage last;
  last.mutable_finished()->set_ok(status.ok());
  if (is_stopped) {  // why is for the worker to say
    log::Info("the rank was stopped",
              {{"rank", options.rank.rank()}, {"message", std::string(status.message())}});
  } else if (!status.ok()) {
    last.mutable_finished()->set_message(std::string(status.message()));
    log::Error("the rank failed", {{"rank", options.rank.rank()},
                                   {"code", absl::StatusCodeToString(status.code())},
                                   {"message", std::string(status.message())}});
  }
  link->Send(std::move(last));
  const LeaveWithin leave(is_stopped ? kStopWithin : kLeaveWithin, ExitCodeOf(status));
  rank.reset();
  link.reset();  // inside the guard: its threads may hang as well
  return status;
}

}  // namespace

int Train(const TrainerLink::Options& options) {
  // A file beyond the user's limit is then a failed save like a full disk's, not the rank's end.
  signal(SIGXFSZ, SIG_IGN);
  StopSignal stop;
  const absl::Status status = TrainToTheEnd(options, stop);
  if (!status.ok() && stop.came()) StopSignal::EndProcess();
  return ExitCodeOf(status);
}

}  // namespace mega::engine
