// Tells people in the log that a certificate is about to expire: from two weeks before, once a day.
#pragma once

#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "base/tls/identity.h"

namespace mega::tls {

// The series of an exporter with the time.
inline constexpr char kExpirySeries[] = "mega_tls_certificate_expiry_timestamp_seconds";
inline constexpr char kExpiryHelp[] =
    "When the certificate of this process, or its authority, expires. Less than two weeks after "
    "time(): make another, and start the process again.";

// Of plain text (null) never.
inline absl::Time ExpiryOf(const Identity* identity) {
  return identity == nullptr ? absl::InfiniteFuture() : identity->not_after;
}

class ExpiryNotice {
 public:
  static constexpr absl::Duration kAhead = absl::Hours(14 * 24);
  static constexpr absl::Duration kInterval = absl::Hours(24);

  // Of plain text (null) there is never anything to tell.
  explicit ExpiryNotice(std::shared_ptr<const Identity> identity)
      : identity_(std::move(identity)) {}

  // Is a line due?
  bool Due(absl::Time now) {
    if (identity_ == nullptr || now < identity_->not_after - kAhead) return false;
    if (now < told_ + kInterval) return false;
    told_ = now;
    return true;
  }
  // Writes the line if it is.
  void Look(absl::Time now);

 private:
  const std::shared_ptr<const Identity> identity_;
  absl::Time told_ = absl::InfinitePast();
};

}  // namespace mega::tls
