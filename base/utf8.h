// Text from outside must be UTF-8 before it enters a proto string or a terminal. A proto string
// that is not cannot be parsed again: on the wire it breaks the call, in a store it is lost data.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mega {

// Whether it may enter a proto string at all, control characters included.
bool IsUtf8(std::string_view text);

// Offset of the first byte that is no part of valid UTF-8, or is a control character other than
// tab and line ends; npos when there is none.
size_t FirstBadByte(std::string_view text);

// At most `bytes` of the text's start, cut between characters.
std::string CutUtf8(std::string_view text, size_t bytes);

}  // namespace mega
