// Any bytes as a manifest.json: no crash, bounded memory; what parses prints and parses back.
#include <cstdint>

#include "base/check.h"
#include "worker/engine/checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using mega::checkpoint::ParseManifest;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<mega::v1::Manifest> manifest = ParseManifest(text);
  if (!manifest.ok()) return 0;
  const auto again = ParseManifest(mega::checkpoint::PrintManifest(*manifest));
  MEGA_CHECK_OK(again);
  return 0;
}
