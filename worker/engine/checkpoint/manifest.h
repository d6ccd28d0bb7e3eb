// manifest.json as an engine has to do with it: written when the coordinator has committed, and
// found again.
#pragma once

#include <string>

#include "base/status.h"
#include "manifest/manifest_file.h"
#include "mega/v1/checkpoint.pb.h"

namespace mega::checkpoint {

using manifest::kManifestName;
using manifest::ParseManifest;
using manifest::PrintManifest;
using manifest::ReadManifest;

// Written beside the data: temporary name, sync, rename, sync of the folder.
absl::Status WriteManifest(const v1::Manifest& manifest, const std::string& folder);

// The folder of the newest complete checkpoint at, under, or one level deeper than `folder`.
absl::StatusOr<std::string> FindCheckpoint(const std::string& folder);

}  // namespace mega::checkpoint
