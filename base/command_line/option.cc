// What an option demands of its values, in CLI11's terms.
#include <CLI/Option.hpp>
#include <utility>

#include "base/command_line/command_line.h"
#include "base/command_line/number.h"
#include "fmt/core.h"

namespace mega {
namespace {

// `type` and the range stand in the help, behind the name of the option's type.
template <typename T>
CLI::Validator Range(const char* type, T least, T most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        T number{};
        if (ReadNumber(text, number) && number >= least && number <= most) return "";
        return "Value " + text + " not in range " + std::to_string(least) + " to " +
               std::to_string(most);
      },
      fmt::format("{} in [{} - {}]", type, least, most));
}

}  // namespace

Option Option::Required() { return Option(option_->required()); }

Option Option::TypeName(const std::string& name) { return Option(option_->type_name(name)); }

Option Option::ShowDefault() { return Option(option_->capture_default_str()); }

Option Option::DefaultText(const std::string& text) { return Option(option_->default_str(text)); }

Option Option::OneOf(const std::vector<std::string>& words) {
  return Option(option_->check(CLI::IsMember(words)));
}

Option Option::AtLeast(int64_t least) {
  return Check([least](const std::string& text) -> std::string {
    int64_t number = 0;
    if (ReadNumber(text, number) && number >= least) return "";
    return fmt::format("'{}' is not a whole number of at least {}", text, least);
  });
}

Option Option::InWholeRange(int64_t least, int64_t most) {
  return Option(option_->check(Range("INT", least, most)));
}

Option Option::InRange(double least, double most) {
  return Option(option_->check(Range("FLOAT", least, most)));
}

Option Option::Check(std::function<std::string(const std::string&)> check) {
  return Option(option_->check(CLI::Validator(
      [check = std::move(check)](std::string& text) { return check(text); }, /*desc=*/"")));
}

Option Option::Excludes(Option other) { return Option(option_->excludes(other.option_)); }

Option Option::Delimiter(char delimiter) { return Option(option_->delimiter(delimiter)); }

Option Option::OneWordEach() { return Option(option_->allow_extra_args(false)); }

}  // namespace mega
