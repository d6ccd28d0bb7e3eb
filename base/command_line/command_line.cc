#include "base/command_line/command_line.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/nearest.h"
#include "fmt/core.h"

namespace mega {
namespace {

// What is wrong when the first word that nobody took stands where a command belongs; empty:
// nothing.
std::string UnknownCommand(const CLI::App& app) {
  const CLI::App* at = &app;
  std::string path = std::filesystem::path(app.get_name()).filename().string();
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  std::vector<std::string> commands;
  for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
    for (const std::string& alias : command->get_aliases()) commands.push_back(alias);
  }
  const std::vector<std::string> words = app.remaining(/*recurse=*/true);
  if (commands.empty() || words.empty() || words.front().starts_with('-')) return "";
  std::string text = fmt::format("'{}' is not a command of {}", words.front(), path);
  if (const std::string nearest = Nearest(words.front(), commands); !nearest.empty()) {
    text += fmt::format("; did you mean {} {}?", path, nearest);
  }
  return text + fmt::format("\n{} --help lists them\n", path);
}

}  // namespace

CLI::Validator AtLeast(int64_t least) {
  return CLI::Validator(
      [least](std::string& text) -> std::string {
        int64_t value = 0;
        if (absl::SimpleAtoi(text, &value) && value >= least) return "";  // CLI11 would saturate
        return fmt::format("'{}' is not a whole number of at least {}", text, least);
      },
      /*validator_desc=*/"");
}

void AddLogLevel(CLI::App& app, log::Level& level) {
  static const auto* names = new std::map<std::string, log::Level>{{"debug", log::Level::kDebug},
                                                                   {"info", log::Level::kInfo},
                                                                   {"warn", log::Level::kWarn},
                                                                   {"error", log::Level::kError}};
  level = log::Level::kInfo;
  app.add_option_function<std::string>(
         "--log-level", [&level](const std::string& name) { level = names->at(name); },
         "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->default_str("info");
}

std::optional<int> ParseArguments(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (const std::string text = UnknownCommand(app); !text.empty()) {
      std::fputs(text.c_str(), stderr);
      return kExitBadUsage;
    }
    return app.exit(error) == 0 ? 0 : kExitBadUsage;
  }
}

}  // namespace mega
