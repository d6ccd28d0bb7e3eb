#include "worker/engine/tokenizers/byte.h"

namespace mega::tokenizers {

void ByteTokenizer::Encode(std::string_view text, std::vector<int32_t>& ids) const {
  const size_t start = ids.size();
  ids.resize(start + text.size());
  for (size_t i = 0; i < text.size(); ++i) ids[start + i] = static_cast<unsigned char>(text[i]);
}

std::string ByteTokenizer::Decode(std::span<const int32_t> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (int32_t id : ids)
    if (id >= 0 && id < 256) text.push_back(static_cast<char>(id));
  return text;
}

}  // namespace mega::tokenizers
