// Failures of the world are absl::Status; these carry them upwards.
//   MEGA_RETURN_IF_ERROR(expr);            returns the status of expr if it is not OK
//   MEGA_ASSIGN_OR_RETURN(lhs, expr);      lhs = value of the StatusOr, or returns its status
// A message names the thing, both sides, and the way out.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/core.h"

#define MEGA_RETURN_IF_ERROR(expr)               \
  do {                                           \
    ::absl::Status mega_status_ = (expr);        \
    if (!mega_status_.ok()) return mega_status_; \
  } while (false)

#define MEGA_CONCAT_INNER_(a, b) a##b
#define MEGA_CONCAT_(a, b) MEGA_CONCAT_INNER_(a, b)
#define MEGA_ASSIGN_OR_RETURN(lhs, expr) \
  MEGA_ASSIGN_OR_RETURN_(MEGA_CONCAT_(mega_statusor_, __LINE__), lhs, expr)
#define MEGA_ASSIGN_OR_RETURN_(var, lhs, expr)   \
  auto var = (expr);                             \
  if (!var.ok()) return std::move(var).status(); \
  lhs = std::move(var).value()

namespace mega {

template <typename... Args>
absl::Status InvalidArgument(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
absl::Status NotFound(fmt::format_string<Args...> format, Args&&... args) {
  return absl::NotFoundError(fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
absl::Status FailedPrecondition(fmt::format_string<Args...> format, Args&&... args) {
  return absl::FailedPreconditionError(fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
absl::Status DataLoss(fmt::format_string<Args...> format, Args&&... args) {
  return absl::DataLossError(fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
absl::Status Unavailable(fmt::format_string<Args...> format, Args&&... args) {
  return absl::UnavailableError(fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
absl::Status Internal(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InternalError(fmt::format(format, std::forward<Args>(args)...));
}

// From errno: the code that fits it, and "what: strerror".
absl::Status ErrnoStatus(int error, std::string_view what);

// The same status with "context: " before its message.
absl::Status Annotate(const absl::Status& status, std::string_view context);

}  // namespace mega
