// One token a byte: 256 ids, no special ones, any file is text.
#pragma once

#include "worker/engine/tokenizers/tokenizer.h"

namespace mega::tokenizers {

class ByteTokenizer : public Tokenizer {
 public:
  std::string name() const override { return "byte"; }
  int64_t vocab_size() const override { return 256; }
  std::optional<int32_t> end_of_document() const override { return std::nullopt; }
  bool concatenative() const override { return true; }
  void Encode(std::string_view text, std::vector<int32_t>& ids) const override;
  std::string Decode(std::span<const int32_t> ids) const override;
};

}  // namespace mega::tokenizers
