// Parses, and tells people about help and mistakes, the same way in all programs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <sstream>
#include <utility>

#include "base/command_line/command_line.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "base/standard_output.h"
#include "base/utf8.h"
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

// The command that was chosen, and its name with those above it.
std::pair<const CLI::App*, std::string> Chosen(const CLI::App& app) {
  const CLI::App* at = &app;
  std::string path = app.get_name();
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return {at, path};
}

std::string Refusal(const std::string& word, const std::string& what, const std::string& path,
                    const std::string& nearest) {
  std::string text = fmt::format("'{}' is not {} of {}", word, what, path);
  if (!nearest.empty()) text += fmt::format("; did you mean {}?", nearest);
  return text + fmt::format("\n{} --help lists them\n", path);
}

// What is wrong when the first word that nobody took stands where a command belongs; empty:
// nothing.
std::string UnknownCommand(const CLI::App& app) {
  const auto [at, path] = Chosen(app);
  std::vector<std::string> commands;
  for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
    for (const std::string& alias : command->get_aliases()) commands.push_back(alias);
  }
  const std::vector<std::string> words = app.remaining(/*recurse=*/true);
  if (commands.empty() || words.empty() || words.front().starts_with('-')) return "";
  const std::string nearest = Nearest(words.front(), commands);
  return Refusal(words.front(), "a command", path, nearest.empty() ? "" : path + " " + nearest);
}

// The same for an option, which may be one of the commands above.
std::string UnknownOption(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(/*recurse=*/true);
  const auto unknown = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word.size() > 1 && word.starts_with('-');
  });
  if (unknown == words.end()) return "";
  const std::string word = unknown->substr(0, unknown->find('='));
  const auto [chosen, path] = Chosen(app);
  std::vector<std::string> options;
  for (const CLI::App* at = chosen; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    }
  }
  return Refusal(word, "an option", path, word.starts_with("--") ? Nearest(word, options) : "");
}

// What is wrong with the first word that is no UTF-8; empty: nothing. All words end in messages,
// paths and errors, which take no other.
std::string NotUtf8(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (IsUtf8(word)) continue;
    const std::string_view before = i > 1 ? argv[i - 1] : "";
    const std::string option = before.starts_with('-') ? fmt::format(" (after {})", before) : "";
    return fmt::format("argument {}{} is not UTF-8: '{}'\n", i, option, word);
  }
  return "";
}

int TellMistake(const std::string& text) {
  std::fputs(Printable(text).c_str(), stderr);
  return kExitBadUsage;
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
  if (const std::string text = NotUtf8(argc, argv); !text.empty()) return TellMistake(text);
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::RuntimeError& ran) {
    return ran.get_exit_code();
  } catch (const CLI::ParseError& error) {
    if (const std::string text = UnknownCommand(*app_); !text.empty()) return TellMistake(text);
    std::ostringstream asked, told;
    if (app_->exit(error, asked, told) == 0) {
      WriteStandardOutput(asked.str());
      return 0;
    }
    const bool may_be_unknown = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr ||
                                dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const std::string text = may_be_unknown ? UnknownOption(*app_) : "";
    return TellMistake(text.empty() ? told.str() : text);
  }
}

}  // namespace mega
