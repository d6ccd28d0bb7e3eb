// Transports the tests of this folder run on. UCX is not instrumented, so not under TSan.
#pragma once

#include <string>
#include <vector>

namespace mega::distributed {

inline std::vector<std::string> Backends() { return {"inproc"}; }

}  // namespace mega::distributed
