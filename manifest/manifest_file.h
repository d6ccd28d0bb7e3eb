// manifest.json: what a complete checkpoint consists of, beside its files. Comes from outside as
// any file does: parsing bounds its memory, and what it answers has passed Validate.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "mega/v1/checkpoint.pb.h"

namespace mega::manifest {

inline constexpr char kManifestName[] = "manifest.json";
inline constexpr int64_t kMaxManifestBytes = 256ll << 20;

// proto3 JSON ⇄ Manifest; Parse validates.
absl::StatusOr<v1::Manifest> ParseManifest(std::string_view json);
std::string PrintManifest(const v1::Manifest& manifest);

// Reads FOLDER/manifest.json; sets `directory` to the folder. NOT_FOUND when there is none.
absl::StatusOr<v1::Manifest> ReadManifest(const std::string& folder);

}  // namespace mega::manifest
