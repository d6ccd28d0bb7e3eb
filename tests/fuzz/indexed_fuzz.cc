// Any bytes as a .idx beside any .bin: no crash, bounded memory; what opens is consistent, and all
// its tokens can be read. Input: one byte n, n bytes of .bin, the rest is the .idx.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/check.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/temp_dir.h"
#include "worker/engine/datasets/indexed.h"

namespace {

using mega::datasets::IndexedDataset;

// One dataset whose two files are replaced for every input.
struct Files {
  Files() {
    std::filesystem::create_symlink(bin.path(), folder / "d.bin");
    std::filesystem::create_symlink(index.path(), folder / "d.idx");
  }
  mega::testing::TempDir folder;
  mega::fuzz::MemoryFile bin{"bin"}, index{"idx"};
};

void CheckPlaces(const IndexedDataset& data) {
  int64_t token = 0;
  for (int64_t i = 0; i < data.num_sequences(); ++i) {
    MEGA_CHECK_EQ(data.SequenceStart(i), token);
    MEGA_CHECK(data.SequenceLength(i) >= 0);
    token += data.SequenceLength(i);
  }
  MEGA_CHECK_EQ(token, data.num_tokens());
  MEGA_CHECK_EQ(data.DocumentStart(0), 0);
  MEGA_CHECK_EQ(data.DocumentStart(data.num_documents()), data.num_sequences());
  for (int64_t d = 0; d < data.num_documents(); ++d)
    MEGA_CHECK(data.DocumentStart(d) <= data.DocumentStart(d + 1));
}

void CheckTokens(const IndexedDataset& data) {
  std::vector<int32_t> all(static_cast<size_t>(data.num_tokens()));
  const absl::Status read = data.Read(0, all);
  bool each_ok = true;
  for (int64_t i = 0; i < data.num_tokens(); ++i) {
    int32_t token = -1;
    const bool ok = data.Read(i, {&token, 1}).ok();
    each_ok &= ok;
    if (read.ok()) MEGA_CHECK_EQ(token, all[static_cast<size_t>(i)]);
    if (ok) MEGA_CHECK(token >= 0);
  }
  MEGA_CHECK_EQ(read.ok(), each_ok);
  if (!read.ok()) MEGA_CHECK(absl::IsDataLoss(read));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Files files;
  if (size == 0) return 0;
  const std::span<const char> rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t bin_bytes = std::min<size_t>(data[0], rest.size());
  files.bin.Set(rest.first(bin_bytes));
  files.index.Set(rest.subspan(bin_bytes));
  const absl::StatusOr<IndexedDataset> dataset = IndexedDataset::Open(files.folder / "d");
  if (!dataset.ok()) {
    MEGA_CHECK(absl::IsInvalidArgument(dataset.status()));
    MEGA_CHECK(dataset.status().message().find("d.idx") != std::string::npos);
    return 0;
  }
  CheckPlaces(*dataset);
  CheckTokens(*dataset);
  return 0;
}
