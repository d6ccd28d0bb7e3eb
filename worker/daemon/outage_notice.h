// How often people hear that this worker has no session: at once, then once a minute, and at once
// again when the kind of trouble changes. Pure: the caller brings the time.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace mega::daemon {

class OutageNotice {
 public:
  enum class Kind { kUnreachable, kRefused };

  static constexpr absl::Duration kInterval = absl::Minutes(1);

  // A dial has failed: is a line due?
  bool Due(Kind kind, absl::Duration now) {
    if (kind_ == kind && now - told_ < kInterval) return false;
    kind_ = kind;
    told_ = now;
    return true;
  }
  // In session.
  void Over() { kind_.reset(); }

 private:
  std::optional<Kind> kind_;  // of the last line
  absl::Duration told_;
};

}  // namespace mega::daemon
