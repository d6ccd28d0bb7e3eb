// Texts that were tokenised once, kept for the next start. The files are Mega's own: what is
// damaged among them is built again and never an error.
#pragma once

#include <string>

#include "base/status.h"
#include "worker/engine/datasets/build.h"
#include "worker/engine/tokenizers/tokenizer.h"

namespace mega::datasets {

// The prefix of `path` built into `folder`, built now unless it is there already, whole. Its name
// carries a hash of path, size, time of change and tokenizer, so a changed text is built anew. Any
// number of processes may ask at once: one builds, the others wait for it.
//
// Whole: the index says nothing that Open refuses, both files have the sizes that they were built
// with, and so have 32 pieces of 64 KiB of each, spread evenly, their bytes. That is all of a file
// up to 2 MiB; of a longer one a cut and a run of lost blocks are found, and a single flipped bit
// between the pieces is not: nobody waits at each start until terabytes are read.
absl::StatusOr<std::string> BuildCached(const std::string& path,
                                        const tokenizers::Tokenizer& tokenizer,
                                        const std::string& folder, const OnProgress& progress = {});

}  // namespace mega::datasets
