// Reads slices at any layout: each wanted slice is filled from all stored ones that overlap it.
#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "mega/v1/checkpoint.pb.h"
#include "worker/engine/checkpoint/named_slice.h"

namespace mega::checkpoint {

// Whether `into` can be loaded, views unread and unwritten: its tensors are there with their shapes
// and types, and the files of the manifest are there with their sizes. For who has not taken memory
// yet: a small manifest may claim a model that no file could hold. Errors as those of Load.
absl::Status CheckLoad(const v1::Manifest& manifest, const std::string& folder,
                       std::span<const NamedSlice> into);

// `manifest` has passed manifest::Validate; its files lie in `folder`. Only the files and ranges
// that overlap are read; the checksum of every stored slice that is touched is verified. NOT_FOUND
// lists the tensors the checkpoint lacks, INVALID_ARGUMENT those of another shape or type (nothing
// is read then), DATA_LOSS is for files that are not what the manifest says. On error the contents
// of `into` are undefined.
absl::Status Load(const v1::Manifest& manifest, const std::string& folder,
                  std::span<const NamedSlice> into);

}  // namespace mega::checkpoint
