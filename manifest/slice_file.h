// Names of the files in which ranks save their slices: a3-r00001.safetensors is of attempt 3 and
// rank 1. No other attempt of the job writes under that name, so it says whose a file is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mega::manifest {

struct SliceFile {
  int64_t attempt = 0;
  int64_t rank = 0;
};

std::string SliceFileName(const SliceFile& file);
// Also of a file that still has its temporary name, with ".tmp" at the end. Nothing for any other.
std::optional<SliceFile> ParseSliceFileName(std::string_view name);

}  // namespace mega::manifest
