// The release this tree becomes. Wire compatibility: tests/data/wire.
#pragma once

namespace mega {
inline constexpr char kVersion[] = "0.1.0";
}  // namespace mega
