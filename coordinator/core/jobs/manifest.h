// From the parts of all ranks to one manifest: the only proof that a checkpoint is complete.
#pragma once

#include <vector>

#include "base/status.h"
#include "mega/v1/checkpoint.pb.h"

namespace mega::core {

// `parts` are those of every rank, by rank, of one attempt and step. The manifest's own fields (job
// name, create time, spec) are the caller's. INVALID_ARGUMENT when the parts disagree, or when
// their slices do not cover every tensor exactly once. Parts come from outside: nothing in them is
// trusted, and the time is O(n log n). The whole must fit a message to a worker.
absl::StatusOr<v1::Manifest> AssembleManifest(const std::vector<const v1::CheckpointPart*>& parts);

// Which checkpoint it is stays; what it is made of, which is most of it, is in manifest.json.
void DropTensors(v1::Manifest& manifest);

}  // namespace mega::core
