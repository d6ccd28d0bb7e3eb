// One checkpoint, told to people.
#pragma once

#include <string>

#include "mega/v1/checkpoint.pb.h"
#include "mega/v1/job.pb.h"

namespace mega::cli {

// `job`: the one it belongs to, if that is known: pinned or not, and which attempts started from
// it. Tensors are told by kind where the manifest lists them; all numbers may be anything.
std::string CheckpointText(const v1::Manifest& manifest, const v1::Job* job);

}  // namespace mega::cli
