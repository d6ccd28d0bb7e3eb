// Whether a checkpoint on a disk is what its manifest says, to the last byte.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "mega/v1/checkpoint.pb.h"

namespace mega::checkpoint {

struct Verdict {
  v1::Manifest manifest;  // empty when there is none that can be read
  bool has_manifest_file = false;
  int64_t files = 0;  // that were read to the end
  int64_t bytes = 0;  // that were read
  // What is wrong, a sentence each, which names the file. Empty: all is well. Of very much the
  // first; the last sentence then says how much was left out.
  std::vector<std::string> damage;
  // Files of the folder that the manifest does not know: of an attempt before, or somebody's own.
  std::vector<std::string> others;
};

struct VerifyProgress {
  int64_t bytes_read = 0;
  int64_t bytes_total = 0;
};

// Reads FOLDER/manifest.json and every byte of the files that it lists: their sizes, headers and
// checksums, and of each slice its name, type, shape and checksum. All that is wrong is found in
// one go. A folder without a manifest is a save that was never completed, which is damage; without
// the folder it is NOT_FOUND. Files are read and not mapped: a sector that the disk does not give
// is damage, too, and not the end of this process. `told` hears of every few MiB.
absl::StatusOr<Verdict> Verify(const std::string& folder,
                               const std::function<void(const VerifyProgress&)>& told = {});

}  // namespace mega::checkpoint
