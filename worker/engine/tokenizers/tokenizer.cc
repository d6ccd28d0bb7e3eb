#include "worker/engine/tokenizers/tokenizer.h"

#include "worker/engine/tokenizers/byte.h"

namespace mega::tokenizers {

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(std::string_view name) {
  if (name == "byte") return std::make_unique<ByteTokenizer>();
  return InvalidArgument("data.tokenizer is '{}'; choose byte", name);
}

}  // namespace mega::tokenizers
