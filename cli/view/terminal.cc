#include "cli/view/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace mega::cli {

bool IsTerminal(int fd) { return isatty(fd) == 1; }

int TerminalWidth(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    const int width = std::atoi(columns);
    if (width > 0 && width < 10'000) return width;
  }
  return 80;
}

Palette PaletteFor(int fd, ColorMode mode) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool forbidden = no_color != nullptr && *no_color != '\0';
  const bool colored =
      mode == ColorMode::kAlways || (mode == ColorMode::kAuto && !forbidden && IsTerminal(fd));
  if (!colored) return {};
  return {.bold = "\x1b[1m",
          .dim = "\x1b[2m",
          .red = "\x1b[31m",
          .green = "\x1b[32m",
          .yellow = "\x1b[33m",
          .blue = "\x1b[34m",
          .reset = "\x1b[0m"};
}

int DisplayWidth(std::string_view text) {
  int width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return width;
}

}  // namespace mega::cli
