// What a file descriptor can show.
#pragma once

#include <string>
#include <string_view>

namespace mega::cli {

bool IsTerminal(int fd);

// Columns of the terminal behind `fd`, else $COLUMNS, else 80.
int TerminalWidth(int fd);

enum class ColorMode { kAuto, kAlways, kNever };

// Escape sequences, all empty where colour is not wanted (NO_COLOR, no terminal, --color never).
struct Palette {
  std::string bold, dim, red, green, yellow, blue, reset;
};
Palette PaletteFor(int fd, ColorMode mode);

// Columns that UTF-8 text takes; every character counts one.
int DisplayWidth(std::string_view text);

}  // namespace mega::cli
