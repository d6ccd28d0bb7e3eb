// Text ⇄ token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace mega::tokenizers {

// Immutable and thread-safe once made.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // As in data.tokenizer: equal names give equal ids, so built datasets are kept by it.
  virtual std::string name() const = 0;
  virtual int64_t vocab_size() const = 0;
  // Id that ends a document in a built dataset, if the vocabulary has one.
  virtual std::optional<int32_t> end_of_document() const = 0;
  // Encode(a + b) is Encode(a) + Encode(b): long texts may be encoded piece by piece.
  virtual bool concatenative() const = 0;

  // Appends the ids of `text` to `ids`.
  virtual void Encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  // Ids outside the vocabulary give nothing.
  virtual std::string Decode(std::span<const int32_t> ids) const = 0;
};

// INVALID_ARGUMENT for a name that is none.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(std::string_view name);

}  // namespace mega::tokenizers
