// Names that end up in paths, metric labels and command lines: of jobs, namespaces and nodes. An
// error says the rule beside the name.
#pragma once

#include <string_view>

namespace mega {

inline constexpr char kDnsLabelRule[] =
    "1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit";
bool IsDnsLabel(std::string_view name);

// As host names are: a node goes by the name of its machine.
inline constexpr char kHostNameRule[] =
    "1 to 253 characters: parts joined by dots, each of 1 to 63 letters, digits and -, beginning "
    "and ending with a letter or digit";
bool IsHostName(std::string_view name);

}  // namespace mega
