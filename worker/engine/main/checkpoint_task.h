// Task `checkpoint verify`: a checkpoint on a disk against its manifest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mega::engine {

struct VerifyOptions {
  std::string folder;
  std::string output = "text";  // or json
  // Of the checkpoint that should lie there, as the coordinator knows it.
  std::optional<int64_t> step, epoch;
};

// The verdict on standard output. 1: damaged, 3: there is no such folder.
int VerifyCheckpoint(const VerifyOptions& options);

}  // namespace mega::engine
