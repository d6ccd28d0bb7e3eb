// Threads that are started while others work.
#pragma once

#include <functional>
#include <stop_token>
#include <system_error>
#include <thread>

#include "base/status.h"

namespace mega {

// What std::thread, std::jthread and all that start one throw, as RESOURCE_EXHAUSTED with the way
// out.
absl::Status ThreadRefused(const std::system_error& refused);

// RESOURCE_EXHAUSTED when the machine gives no more, where std::jthread throws; nothing was run
// then.
absl::StatusOr<std::jthread> StartThread(std::function<void(std::stop_token)> run);

}  // namespace mega
