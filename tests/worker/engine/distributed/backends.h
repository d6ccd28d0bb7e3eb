// Transports the tests of this folder run on: those that this build has.
#pragma once

#include <string>
#include <vector>

namespace mega::distributed {

inline std::vector<std::string> Backends() {
#ifdef MEGA_TEST_UCX
  return {"inproc", "ucx"};
#else
  return {"inproc"};
#endif
}

}  // namespace mega::distributed
