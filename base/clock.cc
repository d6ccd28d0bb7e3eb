#include "base/clock.h"

#include <time.h>

#include <fstream>
#include <string>

#include "absl/time/clock.h"

namespace mega {

absl::Time SystemClock::WallNow() const { return absl::Now(); }

absl::Duration SystemClock::BootNow() const {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::DurationFromTimespec(now);
}

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id.empty() ? "unknown" : id;
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp out;
  const int64_t ns = absl::ToUnixNanos(time);
  int64_t seconds = ns / 1'000'000'000;
  int64_t nanos = ns % 1'000'000'000;
  if (nanos < 0) {
    nanos += 1'000'000'000;
    --seconds;
  }
  out.set_seconds(seconds);
  out.set_nanos(static_cast<int32_t>(nanos));
  return out;
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

google::protobuf::Duration ToProto(absl::Duration span) {
  google::protobuf::Duration out;
  absl::Duration rest;
  out.set_seconds(absl::IDivDuration(span, absl::Seconds(1), &rest));
  out.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return out;
}

absl::Duration FromProto(const google::protobuf::Duration& span) {
  return absl::Seconds(span.seconds()) + absl::Nanoseconds(span.nanos());
}

}  // namespace mega
