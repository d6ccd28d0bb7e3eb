// Names that nobody has had before, and that nobody can guess.
#pragma once

#include <string>

namespace mega::service {

// Of a job or a cluster, short enough to type: 12 of [a-z2-7], 60 bits.
std::string NewUid();

// Of what only its owner may name: 26 of them, 130 bits.
std::string NewSecretId();

}  // namespace mega::service
