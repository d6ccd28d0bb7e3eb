// What a rank said last, as a message of its exit: text for people, from bytes that may be
// anything.
#pragma once

#include <string>
#include <string_view>

namespace mega::daemon {

// The last three lines that may say why it ended, of the last 1 KiB of those: what a log tells as
// routine (log::IsRoutine) does not, and would stand as the cause of a rank that was killed.
std::string LastLines(std::string_view text);

// A message of at most 4 KiB, as it is or cut and made printable.
std::string Shortened(const std::string& message);

}  // namespace mega::daemon
