#include "base/utf8.h"

#include <cstdint>

namespace mega {
namespace {

// Bytes of the character that starts at `at`, 0 when it is malformed (overlong forms, surrogates
// and values past U+10FFFF included). Unicode 15, table 3-7.
size_t CharacterSize(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> uint8_t {
    return at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : 0;
  };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!follows(1) || !follows(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

bool IsControl(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t size = CharacterSize(text, at);
    if (size == 0) return false;
    at += size;
  }
  return true;
}

size_t FirstBadByte(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = CharacterSize(text, at);
    if (size == 0 || IsControl(text[at])) return at;
    at += size;
  }
  return std::string_view::npos;
}

std::string CutUtf8(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && (static_cast<uint8_t>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return std::string(text.substr(0, bytes));
}

}  // namespace mega
