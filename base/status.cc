#include "base/status.h"

#include "absl/strings/str_cat.h"

namespace mega {

absl::Status ErrnoStatus(int error, std::string_view what) {
  return absl::ErrnoToStatus(error, absl::string_view(what.data(), what.size()));
}

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(absl::string_view(context.data(), context.size()),
                                                  ": ", status.message()));
}

}  // namespace mega
