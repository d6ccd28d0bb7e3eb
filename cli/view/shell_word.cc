#include "cli/view/shell_word.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace mega::cli {

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain = "_-./:=,+@%";
  bool is_plain = !text.empty();
  for (const char c : text) {
    is_plain = is_plain && (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                            kPlain.find(c) != std::string_view::npos);
  }
  if (is_plain) return std::string(text);
  return absl::StrCat(
      "'", absl::StrReplaceAll(absl::string_view(text.data(), text.size()), {{"'", "'\\''"}}), "'");
}

}  // namespace mega::cli
