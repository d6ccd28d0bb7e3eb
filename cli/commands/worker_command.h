// How to start a worker of a coordinator: what `nodes` and `doctor` say where there is none.
#pragma once

#include <string>

#include "cli/client/target.h"

namespace mega::cli {

// A command to paste on a node. It says of TLS what megactl was told, with a certificate that
// `megactl pki issue` makes for the node.
std::string WorkerCommand(const Target& target);

}  // namespace mega::cli
