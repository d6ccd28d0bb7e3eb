// A job's ledger of time (v1::Goodput; written by coordinator/core/jobs/goodput) as readers want
// it: what is open charged up to now, and the sums.
#pragma once

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "mega/v1/job.pb.h"

namespace mega::spec {

struct GoodputSums {
  std::vector<v1::GoodputCause> causes;  // in the ledger's order, the open one included
  double seconds = 0;                    // of the wall clock
  double device_seconds = 0;
  double training_seconds = 0;
  double training_device_seconds = 0;

  // Of the device-seconds held, how many went into steps that were made for the first time; nothing
  // when none was held.
  std::optional<double> Ratio() const;
};

// A reader whose clock is behind takes the open span for empty.
GoodputSums SumGoodput(const v1::Goodput& ledger, absl::Time now);

}  // namespace mega::spec
