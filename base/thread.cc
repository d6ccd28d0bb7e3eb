#include "base/thread.h"

#include <utility>

namespace mega {

absl::Status ThreadRefused(const std::system_error& refused) {
  return absl::ResourceExhaustedError(
      fmt::format("cannot start a thread: {}; memory is short, or a limit is reached (ulimit -u, "
                  "pids.max of the cgroup)",
                  refused.what()));
}

absl::StatusOr<std::jthread> StartThread(std::function<void(std::stop_token)> run) {
  try {
    return std::jthread(std::move(run));
  } catch (const std::system_error& refused) {
    return ThreadRefused(refused);
  }
}

}  // namespace mega
