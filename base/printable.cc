#include "base/printable.h"

#include <cstdio>

#include "base/utf8.h"
#include "fmt/core.h"

namespace mega {
namespace {

// What `text`, which is UTF-8 without other control characters, has of these and of U+0080 to
// U+009F: some terminals take U+009B for the start of an escape sequence.
void Append(std::string_view text, std::string_view kept, std::string& out) {
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\xC2' && static_cast<unsigned char>(text[at + 1]) < 0xA0) {
      out += '?';
      ++at;
    } else {
      const bool is_control = c == '\t' || c == '\n' || c == '\r';
      out += is_control && kept.find(c) == std::string_view::npos ? '?' : c;
    }
  }
}

std::string Replaced(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  for (size_t bad; (bad = FirstBadByte(text)) != std::string_view::npos;) {
    Append(text.substr(0, bad), kept, out);
    out += '?';
    text.remove_prefix(bad + 1);
  }
  Append(text, kept, out);
  return out;
}

}  // namespace

std::string Printable(std::string_view text) { return Replaced(text, "\t\n"); }

std::string PrintableLine(std::string_view text) { return Replaced(text, ""); }

void TellError(std::string_view program, const absl::Status& why) {
  std::fputs(fmt::format("{}: {}\n", program, Printable(std::string(why.message()))).c_str(),
             stderr);
}

}  // namespace mega
