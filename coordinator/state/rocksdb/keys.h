// Keys of the store: a letter for the kind, then its parts. Strings are length-prefixed and numbers
// big-endian, so that no name can reach into another's range and numbers sort as numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mega::state::keys {

inline constexpr std::string_view kFormat = "format";
inline constexpr std::string_view kMeta = "m";
inline constexpr char kJob = 'j', kNode = 'n', kEvent = 'e', kCommand = 'c', kNamespace = 'N',
                      kStep = 's';

inline void AppendNumber(std::string& key, uint64_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    key.push_back(static_cast<char>(number >> shift));
  }
}

// Everything of the kind that belongs to `owner`.
inline std::string Of(char kind, std::string_view owner) {
  std::string key(1, kind);
  AppendNumber(key, owner.size(), 4);
  key.append(owner);
  return key;
}

inline std::string Of(char kind, std::string_view owner, int64_t number) {
  std::string key = Of(kind, owner);
  AppendNumber(key, static_cast<uint64_t>(number), 8);
  return key;
}

}  // namespace mega::state::keys
