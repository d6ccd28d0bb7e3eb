// RankRef as a value that orders and prints: one incarnation of one rank, over all jobs and
// attempts.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "fmt/core.h"
#include "mega/v1/worker.pb.h"

namespace mega::daemon {

struct RankKey {
  std::string job_uid;
  int64_t attempt = 0;
  int64_t epoch = 0;
  int64_t rank = 0;

  auto operator<=>(const RankKey&) const = default;

  static RankKey From(const v1::RankRef& ref) {
    return {ref.job_uid(), ref.attempt(), ref.epoch(), ref.rank()};
  }
  v1::RankRef ToProto() const {
    v1::RankRef ref;
    ref.set_job_uid(job_uid);
    ref.set_attempt(attempt);
    ref.set_epoch(epoch);
    ref.set_rank(rank);
    return ref;
  }
  // "3f2a/a1/r0"
  std::string Text() const { return fmt::format("{}/a{}/r{}", job_uid, attempt, rank); }
};

}  // namespace mega::daemon
