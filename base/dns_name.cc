#include "base/dns_name.h"

#include <algorithm>

namespace mega {
namespace {

constexpr size_t kMostLabel = 63;
constexpr size_t kMostName = 253;

// By hand: std::isalnum asks the locale.
bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsLetterOrDigit(char c) { return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z'); }

bool IsLabel(std::string_view label, bool (*is_inner)(char)) {
  return !label.empty() && label.size() <= kMostLabel && label.front() != '-' &&
         label.back() != '-' &&
         std::all_of(label.begin(), label.end(), [&](char c) { return c == '-' || is_inner(c); });
}

}  // namespace

bool IsDnsLabel(std::string_view name) { return IsLabel(name, IsLowerOrDigit); }

bool IsHostName(std::string_view name) {
  if (name.size() > kMostName) return false;
  while (true) {
    const size_t dot = name.find('.');
    if (!IsLabel(name.substr(0, dot), IsLetterOrDigit)) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

}  // namespace mega
