// Any bytes as a segment of the coordinator's journal: no crash, bounded memory, and no error but
// DATA_LOSS; what can be read of its beginning is the beginning of what can be read of it.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "coordinator/service/journal.h"
#include "tests/fuzz/memory_file.h"

namespace {

struct Records {
  absl::Status status;
  bool torn = false;
  std::vector<std::string> bytes;
};

Records Read(mega::fuzz::MemoryFile& file, std::span<const char> input) {
  file.Set(input);
  Records out;
  out.status = mega::service::ReadSegment(
      file.path(),
      [&](const mega::v1::JournalRecord& record) {
        out.bytes.push_back(record.SerializeAsString());
        return absl::OkStatus();
      },
      &out.torn);
  MEGA_CHECK(out.status.ok() || absl::IsDataLoss(out.status));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static mega::fuzz::MemoryFile file("journal");
  const std::span<const char> input(reinterpret_cast<const char*>(data), size);
  const Records all = Read(file, input);
  const Records half = Read(file, input.first(size / 2));
  MEGA_CHECK_LE(half.bytes.size(), all.bytes.size());
  for (size_t i = 0; i < half.bytes.size(); ++i) MEGA_CHECK(half.bytes[i] == all.bytes[i]);
  if (all.status.ok()) MEGA_CHECK_OK(half.status);
  return 0;
}
