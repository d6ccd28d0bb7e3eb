// Parses, and tells people about help and mistakes, the same way in all programs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <sstream>
#include <utility>

#include "base/command_line/command_line.h"
#include "base/nearest.h"
#include "fmt/core.h"

namespace mega {
namespace {

// Descriptions are "example\nhelp".
std::string Example(const CLI::App& app) {
  const std::string& text = app.get_description();
  return text.substr(0, text.find('\n'));
}
std::string Help(const CLI::App& app) {
  const std::string& text = app.get_description();
  return text.substr(text.find('\n') + 1);
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    return "Example: " + Example(*app) + "\n" + Help(*app) + "\n\n";
  }

  std::string make_subcommand(const CLI::App* command) const override {
    const std::string help = Help(*command);
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_display_name(true), help.substr(0, help.find('\n')),
                             get_column_width());
    return out.str();
  }
};

// What is wrong when the first word that nobody took stands where a command belongs; empty:
// nothing.
std::string UnknownCommand(const CLI::App& app) {
  const CLI::App* at = &app;
  std::string path = app.get_name();
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

Program::Program(const std::string& name, const std::string& help, const std::string& example)
    : Program(std::make_unique<CLI::App>(example + "\n" + help, name)) {}

Program::Program(std::unique_ptr<CLI::App> app) : Command(app.get()), owned_(std::move(app)) {
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->fallthrough();
}

Program::~Program() = default;

void Program::AddVersion(const std::string& version) {
  app_->set_version_flag("--version", version);
}

std::optional<int> Program::Parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::RuntimeError& ran) {
    return ran.get_exit_code();
  } catch (const CLI::ParseError& error) {
    if (const std::string text = UnknownCommand(*app_); !text.empty()) {
      std::fputs(text.c_str(), stderr);
      return kExitBadUsage;
    }
    return app_->exit(error) == 0 ? 0 : kExitBadUsage;
  }
}

}  // namespace mega
