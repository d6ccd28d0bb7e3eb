// Any bytes as a layout line: no crash; what parses prints and parses back the same.
#include <cstdint>

#include "base/check.h"
#include "coordinator/planner/layout/grammar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using mega::planner::ParseLayout;
  using mega::planner::PrintLayout;
  const auto layout = ParseLayout({reinterpret_cast<const char*>(data), size});
  if (!layout.ok()) return 0;
  const auto again = ParseLayout(PrintLayout(*layout));
  MEGA_CHECK_OK(again);
  MEGA_CHECK_EQ(again->layout.SerializeAsString(), layout->layout.SerializeAsString());
  MEGA_CHECK_EQ(again->schedule, layout->schedule);
  return 0;
}
