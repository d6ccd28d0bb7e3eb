// Any bytes as a config.json: no crash, bounded stack; what is refused says why.
#include <cstdint>

#include "base/check.h"
#include "coordinator/planner/model/model_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto model = mega::planner::ParseHfConfig(text, "config.json");
  if (!model.ok()) MEGA_CHECK(!model.status().message().empty());
  return 0;
}
