#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace mega::check {

void Fail(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace mega::check
