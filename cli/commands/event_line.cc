#include "cli/commands/event_line.h"

#include "cli/client/errors.h"
#include "fmt/core.h"

namespace mega::cli {

std::string EventLine(const v1::JobEvent& event, const Palette& palette) {
  std::string color;
  if (event.severity() == v1::SEVERITY_WARNING) color = palette.yellow;
  if (event.severity() == v1::SEVERITY_ERROR) color = palette.red;
  const std::string attempt =
      event.attempt() > 0 ? fmt::format(" attempt {}", event.attempt()) : "";
  return fmt::format("{}{}{}{}: {}", color, Printable(event.reason()),
                     color.empty() ? "" : palette.reset, attempt, Printable(event.message()));
}

}  // namespace mega::cli
