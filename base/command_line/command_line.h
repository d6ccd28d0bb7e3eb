// One way for all programs to read their arguments.
//   if (const auto code = ParseArguments(app, argc, argv)) return *code;
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

#include "base/log.h"

namespace mega {

inline constexpr int kExitBadUsage = 2;

// Nothing when the program goes on. Else its exit code: 0 after help or a version was asked for and
// printed, kExitBadUsage after the error was told on standard error. A command that does not exist
// is such an error whatever else is asked for, its help included; the nearest one is suggested.
// Callbacks of commands run in here.
std::optional<int> ParseArguments(CLI::App& app, int argc, char** argv);

// For counts and numbers: a whole number of at least `least`. Anything else is an error that says
// so.
CLI::Validator AtLeast(int64_t least);

// --log-level of a process; info unless it is given. Other words than the four are errors.
void AddLogLevel(CLI::App& app, log::Level& level);

}  // namespace mega
