// Any bytes as a JSONL file: no crash, bounded memory; the same documents wherever the reader's
// blocks end, and written out again they read back the same. The first byte is the size of a block.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/memory_file.h"
#include "worker/engine/datasets/jsonl.h"

namespace {

using mega::datasets::File;
using mega::fuzz::MemoryFile;

struct Documents {
  bool ok = false;
  std::vector<std::string> texts;
};

Documents Read(const MemoryFile& memory, size_t size, size_t block_bytes) {
  absl::StatusOr<File> file = File::OpenToRead(memory.path());
  MEGA_CHECK_OK(file);
  Documents out;
  int64_t before = 0;
  const absl::Status status = mega::datasets::ReadJsonl(
      *file,
      [&](std::string_view text, int64_t bytes_read) -> absl::Status {
        MEGA_CHECK(before <= bytes_read && bytes_read <= static_cast<int64_t>(size));
        before = bytes_read;
        out.texts.emplace_back(text);
        return absl::OkStatus();
      },
      block_bytes);
  out.ok = status.ok();
  if (!out.ok) {
    MEGA_CHECK(absl::IsInvalidArgument(status));
    // The line is named.
    MEGA_CHECK(status.message().find(memory.path() + ":") == 0);
  }
  return out;
}

void CheckEqual(const Documents& a, const Documents& b) {
  MEGA_CHECK_EQ(a.ok, b.ok);
  MEGA_CHECK(a.texts == b.texts);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static MemoryFile file("jsonl");
  if (size == 0) return 0;
  const std::span<const char> input(reinterpret_cast<const char*>(data) + 1, size - 1);
  file.Set(input);
  const Documents documents = Read(file, input.size(), input.size() + 1);
  CheckEqual(documents, Read(file, input.size(), data[0] + size_t{1}));

  std::string again;
  for (const std::string& text : documents.texts)
    again += nlohmann::json{{"text", text}}.dump() + "\n";
  file.Set(again);
  CheckEqual({true, documents.texts}, Read(file, again.size(), again.size() + 1));
  return 0;
}
