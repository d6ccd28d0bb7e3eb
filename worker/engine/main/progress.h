// What the rank is doing, told to the worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "worker/engine/main/trainer_link.h"

namespace mega::engine {

inline void SendProgress(TrainerLink& link, std::string_view phase, int64_t step) {
  v1::EngineMessage message;
  message.mutable_progress()->set_phase(std::string(phase));
  message.mutable_progress()->set_step(step);
  link.Send(std::move(message));
}

}  // namespace mega::engine
