#include "base/tls/expiry_notice.h"

#include "base/log.h"

namespace mega::tls {

void ExpiryNotice::Look(absl::Time now) {
  if (!Due(now)) return;
  log::Warn(
      "the certificate is about to expire, its own or the authority's; then nobody new is let in. "
      "Make another (megactl pki) and start this program again",
      {{"certificate", Describe(identity_->name)},
       {"expires", absl::FormatTime(identity_->not_after, absl::UTCTimeZone())},
       {"days_left", absl::ToDoubleHours(identity_->not_after - now) / 24}});
}

}  // namespace mega::tls
