// Threads that are started while others work.
#pragma once

#include <functional>
#include <stop_token>
#include <thread>

#include "base/status.h"

namespace mega {

// RESOURCE_EXHAUSTED when the machine gives no more, where std::jthread throws; nothing was run
// then.
absl::StatusOr<std::jthread> StartThread(std::function<void(std::stop_token)> run);

}  // namespace mega
