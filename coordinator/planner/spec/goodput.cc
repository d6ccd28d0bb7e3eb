#include "coordinator/planner/spec/goodput.h"

#include <algorithm>

#include "base/clock.h"

namespace mega::spec {

std::optional<double> GoodputSums::Ratio() const {
  if (device_seconds <= 0) return std::nullopt;
  return training_device_seconds / device_seconds;
}

GoodputSums SumGoodput(const v1::Goodput& ledger, absl::Time now) {
  GoodputSums sums;
  sums.causes.assign(ledger.causes().begin(), ledger.causes().end());
  if (!ledger.open_cause().empty() && ledger.has_open_time()) {
    auto open = std::ranges::find(sums.causes, ledger.open_cause(), &v1::GoodputCause::cause);
    if (open == sums.causes.end()) {
      open = sums.causes.emplace(sums.causes.end());
      open->set_cause(ledger.open_cause());
    }
    const double seconds =
        std::max(0.0, absl::ToDoubleSeconds(now - FromProto(ledger.open_time())));
    open->set_seconds(open->seconds() + seconds);
    open->set_device_seconds(open->device_seconds() +
                             seconds * static_cast<double>(ledger.open_devices()));
  }
  for (const v1::GoodputCause& cause : sums.causes) {
    sums.seconds += cause.seconds();
    sums.device_seconds += cause.device_seconds();
    if (cause.cause() != "training") continue;
    sums.training_seconds += cause.seconds();
    sums.training_device_seconds += cause.device_seconds();
  }
  return sums;
}

}  // namespace mega::spec
