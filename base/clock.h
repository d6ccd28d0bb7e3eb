// Time as a value that is passed in. Leases and deadlines run on CLOCK_BOOTTIME (it counts through
// suspend and no one can set it); wall time is for people.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace mega {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time WallNow() const = 0;
  // Monotonic; comparable between processes of one machine and one boot.
  virtual absl::Duration BootNow() const = 0;
};

class SystemClock : public Clock {
 public:
  absl::Time WallNow() const override;
  absl::Duration BootNow() const override;
};

// The kernel's id of this boot; changes at every reboot.
std::string BootId();

google::protobuf::Timestamp ToProto(absl::Time time);
absl::Time FromProto(const google::protobuf::Timestamp& time);
google::protobuf::Duration ToProto(absl::Duration span);
absl::Duration FromProto(const google::protobuf::Duration& span);

}  // namespace mega
