// Task `checkpoint verify`: a checkpoint on a disk against its manifest.
#pragma once

#include <string>

namespace mega::engine {

struct VerifyOptions {
  std::string folder;
  std::string output = "text";  // or json
};

// The verdict on standard output. 1: damaged, 3: there is no such folder.
int VerifyCheckpoint(const VerifyOptions& options);

}  // namespace mega::engine
