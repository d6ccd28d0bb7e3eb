// Which word was meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mega {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`, at most
// `limit` + 1. Case and the difference of '-' and '_' do not count.
size_t EditDistance(std::string_view a, std::string_view b, size_t limit);

// The word nearest to `typed`; empty when none is near enough to be meant (a third of its length).
std::string Nearest(std::string_view typed, std::span<const std::string> words);

}  // namespace mega
