// Inside of ParallelFor: teams of libraries that bring their own threads.
#pragma once

#include "kernels/device/stream.h"

namespace mega::kernels {

// Threads an op on `stream` may use: stream.threads(), or OMP's default for 0. At least 1.
int TeamSize(const Stream& stream);

// While it lives, OpenMP regions that this thread enters (oneDNN's) use the stream's team.
class ScopedTeam {
 public:
  explicit ScopedTeam(const Stream& stream);
  ~ScopedTeam();
  ScopedTeam(const ScopedTeam&) = delete;

 private:
  int before_;
};

}  // namespace mega::kernels
