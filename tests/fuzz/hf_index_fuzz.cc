// Any bytes as a model.safetensors.index.json: no crash, bounded memory; files are plain names.
#include <cstdint>

#include "base/check.h"
#include "worker/engine/checkpoint/hf_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto index = mega::checkpoint::ParseHfIndex(text, "index");
  if (!index.ok()) return 0;
  for (const auto& [tensor, file] : *index)
    MEGA_CHECK(!file.empty() && file.find('/') == std::string::npos);
  return 0;
}
