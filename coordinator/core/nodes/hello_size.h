// A hello becomes a durable node, and each rank that it names an order to end it: what one worker
// may say of itself is bounded, however large a message may be.
#pragma once

#include <string>

#include "mega/v1/worker.pb.h"

namespace mega::core {

// What is too large, with both sides. Empty: nothing is.
//   64 labels and 64 libraries; texts of 512 bytes; 256 findings of 4 KiB; 8192 ranks that run;
//   256 KiB in all that becomes the node, fields that this release does not know included
std::string WhatIsTooLarge(const v1::Hello& hello);

// Names are a worker's choice: whoever says ever new ones would make nodes without end.
inline constexpr size_t kMostNodes = 65'536;

}  // namespace mega::core
