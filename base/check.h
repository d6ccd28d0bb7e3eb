// Broken invariants: print the claim, both values and the place, then abort. For failures of the
// world use base/status.h.
#pragma once

#include <string>

#include "fmt/core.h"
#include "fmt/ostream.h"

namespace mega::check {
[[noreturn]] void Fail(const char* file, int line, const std::string& what);
}  // namespace mega::check

#define MEGA_CHECK(condition)                                                \
  do {                                                                       \
    if (!(condition)) [[unlikely]]                                           \
      ::mega::check::Fail(__FILE__, __LINE__, "MEGA_CHECK(" #condition ")"); \
  } while (false)

#define MEGA_CHECK_OP_(a, op, b)                                                              \
  do {                                                                                        \
    const auto& mega_a_ = (a);                                                                \
    const auto& mega_b_ = (b);                                                                \
    if (!(mega_a_ op mega_b_)) [[unlikely]]                                                   \
      ::mega::check::Fail(                                                                    \
          __FILE__, __LINE__,                                                                 \
          fmt::format("MEGA_CHECK({} {} {}): {} against {}", #a, #op, #b, mega_a_, mega_b_)); \
  } while (false)

#define MEGA_CHECK_EQ(a, b) MEGA_CHECK_OP_(a, ==, b)
#define MEGA_CHECK_NE(a, b) MEGA_CHECK_OP_(a, !=, b)
#define MEGA_CHECK_LT(a, b) MEGA_CHECK_OP_(a, <, b)
#define MEGA_CHECK_LE(a, b) MEGA_CHECK_OP_(a, <=, b)
#define MEGA_CHECK_GT(a, b) MEGA_CHECK_OP_(a, >, b)
#define MEGA_CHECK_GE(a, b) MEGA_CHECK_OP_(a, >=, b)
// For an absl::Status or StatusOr whose failure would be a bug of ours.
#define MEGA_CHECK_OK(expr)                                                                    \
  do {                                                                                         \
    const auto& mega_status_ = (expr);                                                         \
    if (!mega_status_.ok()) [[unlikely]]                                                       \
      ::mega::check::Fail(__FILE__, __LINE__, #expr ": " + ::mega::check::Text(mega_status_)); \
  } while (false)

namespace mega::check {
template <typename S>
std::string Text(const S& s) {
  if constexpr (requires { s.status(); }) {
    return s.status().ToString();
  } else {
    return s.ToString();
  }
}
}  // namespace mega::check
