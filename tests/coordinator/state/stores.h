// The stores that a test runs over: memory always, RocksDB where it was built.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/state/state_store.h"
#include "tests/support/temp_dir.h"

namespace mega::state {

enum class StoreKind { kMemory, kRocksDb };
std::vector<StoreKind> AllStores();
std::string_view Name(StoreKind kind);

// Opens the same store again and again; the last one must be gone by then.
class StoreFactory {
 public:
  explicit StoreFactory(StoreKind kind);
  std::unique_ptr<StateStore> Open();
  const std::string& folder() const { return folder_.path(); }

 private:
  const StoreKind kind_;
  const testing::TempDir folder_;
  std::unique_ptr<StateStore> memory_;  // outlives what Open returns
};

}  // namespace mega::state
