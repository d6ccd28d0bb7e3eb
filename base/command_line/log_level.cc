#include <map>

#include "base/command_line/command_line.h"

namespace mega {

void AddLogLevel(Command command, log::Level& level) {
  static const auto* levels = new std::map<std::string, log::Level>{{"debug", log::Level::kDebug},
                                                                    {"info", log::Level::kInfo},
                                                                    {"warn", log::Level::kWarn},
                                                                    {"error", log::Level::kError}};
  level = log::Level::kInfo;
  command
      .AddOption(
          "--log-level", [&level](const std::string& name) { level = levels->at(name); },
          "debug, info, warn or error")
      .OneOf({"debug", "info", "warn", "error"})
      .DefaultText("info");
}

}  // namespace mega
