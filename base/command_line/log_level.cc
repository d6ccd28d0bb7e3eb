#include <string>
#include <utility>
#include <vector>

#include "base/command_line/command_line.h"

namespace mega {

void AddLogLevel(Command command, log::Level& level) {
  static const auto* levels =
      new std::vector<std::pair<std::string, log::Level>>{{"debug", log::Level::kDebug},
                                                          {"info", log::Level::kInfo},
                                                          {"warn", log::Level::kWarn},
                                                          {"error", log::Level::kError}};
  std::vector<std::string> words;
  for (const auto& [word, unused] : *levels) words.push_back(word);
  level = log::Level::kInfo;
  command
      .AddOption(
          "--log-level",
          [&level](const std::string& name) {
            for (const auto& [word, meant] : *levels) {
              if (word == name) level = meant;
            }
          },
          "Lines that matter less are left out")
      .OneOf(words)
      .DefaultText("info");
}

}  // namespace mega
