// A hello becomes a durable node, and each rank that it names an order to end it: what one worker
// may say of itself is bounded, however large a message may be.
#pragma once

#include <string>

#include "mega/v1/worker.pb.h"

namespace mega::core {

// What is too large, with both sides. Empty: nothing is.
//   64 labels and 64 libraries; texts of 512 bytes; 256 findings of 4 KiB; 8192 ranks that run
std::string WhatIsTooLarge(const v1::Hello& hello);

}  // namespace mega::core
