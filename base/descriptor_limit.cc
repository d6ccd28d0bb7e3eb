#include "base/descriptor_limit.h"

#include <errno.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "base/status.h"

namespace mega {
namespace {

constexpr auto kMost = static_cast<rlim_t>(std::numeric_limits<int64_t>::max());

rlimit Limits() {
  rlimit limits{};
  getrlimit(RLIMIT_NOFILE, &limits);
  return limits;
}

}  // namespace

int64_t DescriptorLimit() { return static_cast<int64_t>(std::min(Limits().rlim_cur, kMost)); }

void RaiseDescriptorLimit() {
  rlimit limits = Limits();
  limits.rlim_cur = limits.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limits) == 0) return;
  log::Warn("the limit on open files stays as it was",
            {{"limit", DescriptorLimit()}, {"error", ErrnoStatus(errno, "setrlimit").ToString()}});
}

}  // namespace mega
