// Any bytes as a safetensors file: no crash, bounded memory; every byte of every tensor it lists is
// there to be read.
#include <cstdint>

#include "base/check.h"
#include "worker/engine/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using mega::checkpoint::SafetensorsFile;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Parse(bytes, "fuzz");
  if (!file.ok()) return 0;
  int64_t sum = 0;
  for (const std::string& name : file->names()) {
    const auto* entry = file->Find(name);
    MEGA_CHECK(entry != nullptr);
    MEGA_CHECK_EQ(static_cast<int64_t>(entry->data.size()),
                  entry->shape.elements() * mega::kernels::SizeOf(entry->dtype));
    for (const std::byte byte : entry->data) sum += static_cast<int64_t>(byte);
  }
  return sum < 0 ? 1 : 0;
}
