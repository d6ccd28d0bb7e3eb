#include "worker/engine/main/train.h"

#include <signal.h>

#include "base/log.h"
#include "worker/engine/main/exit_codes.h"
#include "worker/engine/main/leave_within.h"
#include "worker/engine/main/rank.h"
#include "worker/engine/main/restore.h"

namespace mega::engine {
namespace {

// After its last words.
constexpr std::chrono::seconds kLeaveWithin(10);

absl::Status LiveAndTrain(TrainerLink& link, std::unique_ptr<Rank>& rank) {
  MEGA_ASSIGN_OR_RETURN(const v1::StartTraining start, link.WaitForStart(absl::Seconds(30)));
  MEGA_ASSIGN_OR_RETURN(rank, Rank::Build(start, link));
  return rank->Run();
}

int ExitCodeOf(const absl::Status& status) {
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

}  // namespace

int Train(const TrainerLink::Options& options) {
  // A file beyond the user's limit is then a failed save like a full disk's, not the rank's end.
  signal(SIGXFSZ, SIG_IGN);
  SystemClock clock;
  TrainerLink link(options, clock);
  std::unique_ptr<Rank> rank;
  const absl::Status status = LiveAndTrain(link, rank);
  v1::EngineMessage last;
  last.mutable_finished()->set_ok(status.ok());
  last.mutable_finished()->set_message(std::string(status.message()));
  link.Send(std::move(last));
  if (!status.ok()) {
    log::Error("the rank failed", {{"rank", options.rank.rank()},
                                   {"code", absl::StatusCodeToString(status.code())},
                                   {"message", std::string(status.message())}});
  }
  const LeaveWithin leave(kLeaveWithin, ExitCodeOf(status));
  rank.reset();
  return ExitCodeOf(status);
}

}  // namespace mega::engine
