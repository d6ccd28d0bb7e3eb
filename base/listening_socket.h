// TCP sockets that wait for connections.
#pragma once

#include <vector>

#include "base/listen_address.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace mega {

// At every address of the host, all at one port: `at.port`, which becomes the real one where it is
// 0. A wildcard takes IPv4 and IPv6. An address that this machine has not (IPv6 where it is off) is
// left out, unless none is left. Nobody else listens there meanwhile. They do not block.
absl::StatusOr<std::vector<UniqueFd>> ListenOn(ListenAddress& at);

// Of what accept4 says: the machine has no descriptors or no memory left, and will say so again.
// Any other error but EAGAIN is about that one connection, which is gone.
bool IsExhaustion(int error);

}  // namespace mega
