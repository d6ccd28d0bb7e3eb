// Task `data build`: text or JSONL files into PREFIX.bin and PREFIX.idx.
#pragma once

#include <string>
#include <vector>

namespace mega::engine {

struct DataOptions {
  std::vector<std::string> files;
  std::string out;
  std::string tokenizer = "byte";
};

int BuildData(const DataOptions& options);

}  // namespace mega::engine
