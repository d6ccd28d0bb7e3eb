// XXH64 with seed 0 of bytes that come in pieces: what manifests hold of files and slices.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>

namespace mega::checkpoint {

class Hash {
 public:
  Hash() : state_(XXH64_createState()) { XXH64_reset(state_, 0); }
  ~Hash() { XXH64_freeState(state_); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;
  void Add(const void* data, size_t bytes) { XXH64_update(state_, data, bytes); }
  uint64_t value() const { return XXH64_digest(state_); }

 private:
  XXH64_state_t* state_;
};

}  // namespace mega::checkpoint
