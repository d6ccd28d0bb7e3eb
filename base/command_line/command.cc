// A command's declarations, in CLI11's terms; numbers are read here and not there.
#include <CLI/App.hpp>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/command_line/command_line.h"
#include "base/command_line/number.h"
#include "fmt/core.h"

namespace mega {
namespace {

template <typename T>
struct Shape {
  using Value = T;
  static constexpr bool kIsList = false;
};
template <typename T>
struct Shape<std::optional<T>> : Shape<T> {};
template <typename T>
struct Shape<std::vector<T>> {
  using Value = T;
  static constexpr bool kIsList = true;
};

// The last one, which is the long one by custom: CLI11's own errors say that name, too.
std::string ShownName(const std::string& names) { return names.substr(names.rfind(',') + 1); }

template <typename T>
T NumberOf(const std::string& names, const std::string& text) {
  T number{};
  if (ReadNumber(text, number)) return number;
  std::string wanted = "number";
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    wanted = fmt::format("whole number from {} to {}", Limits::min(), Limits::max());
  }
  throw CLI::ValidationError(ShownName(names), fmt::format("'{}' is not a {}", text, wanted));
}

template <typename T>
const char* NumberType() {
  return std::is_floating_point_v<T> ? "FLOAT" : std::is_signed_v<T> ? "INT" : "UINT";
}

template <typename T>
CLI::Option* AddNumber(CLI::App& app, const std::string& names, T& target,
                       const std::string& help) {
  CLI::Option* option = app.add_option_function<std::string>(
      names,
      [&target, names](const std::string& word) {
        target = NumberOf<typename Shape<T>::Value>(names, word);
      },
      help);
  if constexpr (std::is_arithmetic_v<T>)
    option->default_function([&target] { return fmt::format("{}", target); });
  return option;
}

template <typename T>
CLI::Option* AddNumbers(CLI::App& app, const std::string& names, std::vector<T>& target,
                        const std::string& help) {
  return app.add_option_function<std::vector<std::string>>(
      names,
      [&target, names](const std::vector<std::string>& words) {
        target.clear();
        for (const std::string& word : words) target.push_back(NumberOf<T>(names, word));
      },
      help);
}

}  // namespace

Command Command::AddCommand(const std::string& name, const std::string& help,
                            const std::string& example) {
  if (app_->get_require_subcommand_max() == 0) app_->require_subcommand(0, 1);
  return Command(app_->add_subcommand(name, example + "\n" + help));
}

template <OptionTarget T>
Option Command::AddOption(const std::string& names, T& target, const std::string& help) {
  using Value = typename Shape<T>::Value;
  if constexpr (std::is_same_v<Value, std::string>) {
    return Option(app_->add_option(names, target, help));
  } else if constexpr (Shape<T>::kIsList) {
    return Option(AddNumbers(*app_, names, target, help)->type_name(NumberType<Value>()));
  } else {
    return Option(AddNumber(*app_, names, target, help)->type_name(NumberType<Value>()));
  }
}

using Names = const std::string&;
template Option Command::AddOption(Names, std::string&, const std::string&);
template Option Command::AddOption(Names, int&, const std::string&);
template Option Command::AddOption(Names, int64_t&, const std::string&);
template Option Command::AddOption(Names, uint64_t&, const std::string&);
template Option Command::AddOption(Names, double&, const std::string&);
template Option Command::AddOption(Names, std::optional<std::string>&, const std::string&);
template Option Command::AddOption(Names, std::optional<int64_t>&, const std::string&);
template Option Command::AddOption(Names, std::vector<std::string>&, const std::string&);
template Option Command::AddOption(Names, std::vector<int>&, const std::string&);
template Option Command::AddOption(Names, std::vector<int64_t>&, const std::string&);

Option Command::AddOption(const std::string& names, std::function<void(const std::string&)> take,
                          const std::string& help) {
  return Option(app_->add_option_function<std::string>(names, take, help));
}

Option Command::AddFlag(const std::string& names, bool& target, const std::string& help) {
  return Option(app_->add_flag(names, target, help));
}

void Command::Alias(const std::string& name) { app_->alias(name); }

void Command::Footer(const std::string& text) { app_->footer(text); }

void Command::RequireCommand() { app_->require_subcommand(1); }

// CLI11 lets a callback end the parse with an exit code, by this exception.
void Command::OnRun(std::function<int()> run) {
  app_->callback([run = std::move(run)] { throw CLI::RuntimeError(run()); });
}

void Command::PassOn(std::function<int(const std::vector<std::string>&)> run) {
  app_->fallthrough(false);
  app_->set_help_flag();
  app_->prefix_command();
  OnRun([app = app_, run = std::move(run)] { return run(app->remaining()); });
}

bool Command::WasChosen() const { return app_->parsed(); }

std::vector<std::string> Command::CommandNames() const {
  std::vector<std::string> names;
  const CLI::App& app = *app_;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

}  // namespace mega
