// What a rank said last, as a message of its exit: text for people, from bytes that may be
// anything.
#pragma once

#include <string>

namespace mega::daemon {

// ASCII: a string on the wire is UTF-8. What else there is becomes '?'.
std::string Printable(const std::string& text);

// The last three lines, which say most; at most 1 KiB.
std::string LastLines(const std::string& text);

// A message of at most 4 KiB, as it is or cut and made printable.
std::string Shortened(const std::string& message);

}  // namespace mega::daemon
