// Text and JSONL files into .bin/.idx datasets.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/status.h"
#include "worker/engine/tokenizers/tokenizer.h"

namespace mega::datasets {

struct BuildProgress {
  int64_t bytes_read = 0;
  int64_t bytes_total = 0;
  int64_t documents = 0;
  int64_t tokens = 0;
};
// Called now and then, and once at the end. May be empty.
using OnProgress = std::function<void(const BuildProgress&)>;

// Builds PREFIX.bin and PREFIX.idx: a text file is one document, a .jsonl or .ndjson file one a
// line (its "text"). Documents end with the tokenizer's end_of_document, if it has one. The files
// appear when complete, or not at all.
absl::Status Build(std::span<const std::string> paths, const tokenizers::Tokenizer& tokenizer,
                   const std::string& prefix, const OnProgress& progress = {});

}  // namespace mega::datasets
