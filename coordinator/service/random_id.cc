#include "coordinator/service/random_id.h"

#include <sys/random.h>

#include <array>
#include <span>

#include "base/check.h"

namespace mega::service {
namespace {

std::string Letters(std::span<unsigned char> bytes) {
  constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  MEGA_CHECK_EQ(getrandom(bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  std::string letters;
  for (unsigned char byte : bytes) letters += kAlphabet[byte & 31];
  return letters;
}

}  // namespace

std::string NewUid() {
  std::array<unsigned char, 12> bytes;
  return Letters(bytes);
}

std::string NewSecretId() {
  std::array<unsigned char, 26> bytes;
  return Letters(bytes);
}

}  // namespace mega::service
