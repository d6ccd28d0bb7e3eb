#include "worker/daemon/last_words.h"

namespace mega::daemon {
namespace {
constexpr size_t kMaxMessage = 4096;  // the tail of stderr says more
}  // namespace

std::string Printable(const std::string& text) {
  std::string out;
  for (const unsigned char c : text) {
    out += c == '\n' || c == '\t' || (c >= 32 && c < 127) ? static_cast<char>(c) : '?';
  }
  return out;
}

std::string LastLines(const std::string& text) {
  const size_t end = text.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return "";
  size_t start = end > kMaxMessage / 4 ? end - kMaxMessage / 4 : 0;
  size_t line = end;
  for (int i = 0; i < 3 && line != std::string::npos && line > start; ++i) {
    line = text.rfind('\n', line - 1);
  }
  if (line != std::string::npos && line >= start) start = line + 1;
  return text.substr(start, end + 1 - start);
}

std::string Shortened(const std::string& message) {
  return message.size() > kMaxMessage ? Printable(message.substr(0, kMaxMessage)) : message;
}

}  // namespace mega::daemon
