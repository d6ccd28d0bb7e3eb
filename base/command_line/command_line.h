// One way for all programs to say what they take, and to read it.
//   Program program("mega-x", "What it does", "mega-x --listen 127.0.0.1:0");
//   program.AddOption("--listen", options.listen, "HOST:PORT of the API").ShowDefault();
//   if (const auto code = program.Parse(argc, argv)) return *code;
// Options and commands are handles, to be copied; they and all targets live as long as the program
// parses. Declaring the same name twice aborts. CLI11 is behind this header and in no other folder.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mega {

inline constexpr int kExitBadUsage = 2;

// An option, a flag, or a word that stands for itself. Checks come in the order of their
// declaration, before the target is written; what they refuse is an error of usage.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option Required();
  Option TypeName(const std::string& name);  // in the help, for TEXT, INT …
  Option ShowDefault();                      // what the target holds now, in the help
  Option DefaultText(const std::string& text);

  Option OneOf(const std::vector<std::string>& words);
  Option AtLeast(int64_t least);
  Option InRange(std::integral auto least, std::integral auto most) {
    return InWholeRange(static_cast<int64_t>(least), static_cast<int64_t>(most));
  }
  Option InRange(double least, double most);
  // `check` answers what is wrong with a value; empty: nothing.
  Option Check(std::function<std::string(const std::string& value)> check);
  Option Excludes(Option other);

  // Of a list: values in one word, and no word but the next one is a value.
  Option Delimiter(char delimiter);
  Option OneWordEach();

 private:
  Option InWholeRange(int64_t least, int64_t most);
  CLI::Option* option_;
};

// What an option can be read into. Numbers are decimal, and those that the target cannot hold are
// errors; what is optional is set when the option is given; a list takes all words and all
// repetitions.
template <typename T, typename... Types>
concept OneOfTypes = (std::same_as<T, Types> || ...);
template <typename T>
concept OptionTarget = OneOfTypes<T, std::string, int, int64_t, uint64_t, double,
                                  std::optional<std::string>, std::optional<int64_t>,
                                  std::vector<std::string>, std::vector<int>, std::vector<int64_t>>;

// A word that selects what a program does, or the program itself.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // Lists show the first line of `help`; the command's own help begins with `example`. At most one
  // command is chosen. An option that it does not know may be one of the commands above it.
  Command AddCommand(const std::string& name, const std::string& help, const std::string& example);
  // "-n,--name" is an option, "name" a word that stands for itself.
  template <OptionTarget T>
  Option AddOption(const std::string& names, T& target, const std::string& help = "");
  Option AddOption(const std::string& names, std::function<void(const std::string& value)> take,
                   const std::string& help);
  Option AddFlag(const std::string& names, bool& target, const std::string& help);

  void Alias(const std::string& name);
  void Footer(const std::string& text);  // below the help, its own and that of later commands
  void RequireCommand();                 // one of those it has
  // When the command is chosen and all is well, Parse runs this and returns its exit code.
  void OnRun(std::function<int()> run);
  // The same for another program's command: all words after it go there, --help included.
  void PassOn(std::function<int(const std::vector<std::string>& words)> run);

  bool WasChosen() const;
  std::vector<std::string> CommandNames() const;  // without aliases, in order of declaration

 protected:
  CLI::App* app_;
};

class Program : public Command {
 public:
  Program(const std::string& name, const std::string& help, const std::string& example);
  ~Program();

  void AddVersion(const std::string& version);  // --version

  // Nothing when the program goes on. Else its exit code: what OnRun returned; 0 after help or a
  // version was asked for and printed; kExitBadUsage after the error was told on standard error. A
  // word that is not UTF-8 is such an error whatever else is asked for, help included; so is a
  // command that does not exist, and the nearest one is suggested.
  std::optional<int> Parse(int argc, char** argv);

 private:
  explicit Program(std::unique_ptr<CLI::App> app);
  std::unique_ptr<CLI::App> owned_;
};

// --log-level of a process; info unless it is given. Other words than the four are errors.
void AddLogLevel(Command command, log::Level& level);

}  // namespace mega
