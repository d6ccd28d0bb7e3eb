#include "tests/coordinator/state/stores.h"

#include "base/check.h"
#include "coordinator/state/memory_store.h"
#ifdef MEGA_HAS_ROCKSDB
#include "coordinator/state/rocksdb/rocksdb_store.h"
#endif

namespace mega::state {
namespace {

// Closing and opening a memory store is nothing: it hands on to the one that stays.
class Lent : public StateStore {
 public:
  explicit Lent(StateStore& store) : store_(store) {}
  absl::StatusOr<core::State> Load() const override { return store_.Load(); }
  absl::Status Commit(std::span<const v1::Mutation> mutations) override {
    return store_.Commit(mutations);
  }
  absl::Status AppendSteps(std::span<const v1::StepReport> reports) override {
    return store_.AppendSteps(reports);
  }
  absl::StatusOr<std::vector<v1::StepReport>> ReadSteps(const std::string& job_uid,
                                                        int64_t from_step,
                                                        int64_t limit) const override {
    return store_.ReadSteps(job_uid, from_step, limit);
  }
  absl::StatusOr<std::optional<v1::StepReport>> NewestStep(const std::string& job_uid,
                                                           int64_t epoch,
                                                           int64_t after_step) const override {
    return store_.NewestStep(job_uid, epoch, after_step);
  }

 private:
  StateStore& store_;
};

}  // namespace

std::vector<StoreKind> AllStores() {
#ifdef MEGA_HAS_ROCKSDB
  return {StoreKind::kMemory, StoreKind::kRocksDb};
#else
  return {StoreKind::kMemory};
#endif
}

std::string_view Name(StoreKind kind) { return kind == StoreKind::kMemory ? "Memory" : "RocksDb"; }

StoreFactory::StoreFactory(StoreKind kind) : kind_(kind), memory_(new MemoryStore) {}

std::unique_ptr<StateStore> StoreFactory::Open() {
#ifdef MEGA_HAS_ROCKSDB
  if (kind_ == StoreKind::kRocksDb) {
    absl::StatusOr<std::unique_ptr<RocksDbStore>> store = RocksDbStore::Open(folder_ / "db");
    MEGA_CHECK_OK(store);
    return *std::move(store);
  }
#endif
  return std::make_unique<Lent>(*memory_);
}

}  // namespace mega::state
