#include "coordinator/planner/spec/split.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace mega::spec {

absl::StatusOr<std::array<double, 3>> ParseSplit(std::string_view text) {
  constexpr char kWayOut[] = "give the shares of train, validation and test, as in 949,50,1";
  const std::vector<absl::string_view> parts =
      absl::StrSplit(absl::string_view(text.data(), text.size()), ',');
  if (parts.size() > 3) return InvalidArgument("has {} shares; {}", parts.size(), kWayOut);
  std::array<double, 3> shares{};
  double sum = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    // The largest share is bounded so that the sum stays finite.
    if (!absl::SimpleAtod(parts[i], &shares[i]) || !(shares[i] >= 0) || shares[i] > 1e18)
      return InvalidArgument("has the share '{}', which is not a number from 0 to 1e18; {}",
                             std::string(parts[i]), kWayOut);
    sum += shares[i];
  }
  if (!(shares[0] > 0)) return InvalidArgument("gives nothing to training; {}", kWayOut);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace mega::spec
