// What a program prints is its result. A result that could not be written, because the disk is full
// or the descriptor closed, is a failure: it is told on standard error and in the exit code.
#pragma once

#include <functional>
#include <string_view>

namespace mega {

inline constexpr int kExitOutputFailed = 1;

// Writes and flushes. False once this or an earlier write of the process has failed: who prints for
// long stops then, for nobody reads on. std::cout and printf may be used as well.
bool WriteStandardOutput(std::string_view text);
bool StandardOutputFailed();

// Runs a program's `main` and returns its exit code, or kExitOutputFailed instead of 0 when
// standard output could not be written whole; the reason goes to standard error. A reader that has
// left (`| head`) is told nothing. While `main` runs the descriptors 0, 1 and 2 are open, so that
// no file of the program takes the place of one that the caller closed.
int WithStandardOutput(std::string_view program, const std::function<int()>& main);

}  // namespace mega
