// Text as one word of a shell's command line, for commands that people copy.
#pragma once

#include <string>
#include <string_view>

namespace mega::cli {

// As it is where a shell reads it so; else in single quotes, where every other character stands for
// itself.
std::string ShellWord(std::string_view text);

}  // namespace mega::cli
