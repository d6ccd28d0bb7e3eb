// Text from outside (a file, a command line, a peer) as a terminal may get it. Control characters,
// those beyond ASCII included, could move its cursor, hide text or type for its user: each becomes
// '?', as does each byte that is no UTF-8.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace mega {

std::string Printable(std::string_view text);      // tabs and line ends stay
std::string PrintableLine(std::string_view text);  // nothing stays that begins a new line

// "program: message\n" on standard error, printable: how a program says why it ends.
void TellError(std::string_view program, const absl::Status& why);

}  // namespace mega
