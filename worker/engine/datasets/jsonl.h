// Documents out of a JSONL file: one object a line, its "text" is the document.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "worker/engine/datasets/file.h"

namespace mega::datasets {

// Calls `document` for each line with the text and the bytes of the file read so far; blank lines
// are skipped. A line that is no such object is INVALID_ARGUMENT naming file and line. The file is
// read in blocks of `block_bytes`, wherever lines end.
absl::Status ReadJsonl(
    File& file,
    const std::function<absl::Status(std::string_view text, int64_t bytes_read)>& document,
    size_t block_bytes = 1 << 20);

}  // namespace mega::datasets
