#include "coordinator/core/jobs/history.h"

#include <algorithm>

#include "coordinator/core/jobs/manifest.h"

namespace mega::core {
namespace {

constexpr int kWholeAttempts = 3;
constexpr int kAttempts = 100;

}  // namespace

void TrimHistory(v1::Job& job) {
  auto& attempts = *job.mutable_attempts();
  if (attempts.size() >= kAttempts) attempts.DeleteSubrange(0, attempts.size() - kAttempts + 1);
  for (int i = 0; i < attempts.size(); ++i) {
    v1::Attempt& attempt = attempts[i];
    if (attempt.has_load()) {
      // Which checkpoint it was is enough; where its slices lie is in the manifest on disk.
      DropTensors(*attempt.mutable_load());
      attempt.mutable_load()->clear_files();
    }
    if (i + kWholeAttempts > attempts.size()) continue;
    for (v1::RankState& rank : *attempt.mutable_ranks()) {
      rank.clear_address();
      if (rank.has_exit()) rank.mutable_exit()->clear_stderr_tail();
    }
    attempt.mutable_plan()->clear_ranks();
  }
}

}  // namespace mega::core
