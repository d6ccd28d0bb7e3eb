// The StateStore on RocksDB. Keys are in coordinator/state/README.md.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "coordinator/state/state_store.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Env;
}  // namespace rocksdb

namespace mega::state {

class RocksDbStore : public StateStore {
 public:
  // Opens or creates the database in `folder`. FAILED_PRECONDITION when another process has it open
  // or a newer release wrote it; DATA_LOSS when it is damaged. `env` is for tests; it outlives
  // this.
  static absl::StatusOr<std::unique_ptr<RocksDbStore>> Open(const std::string& folder,
                                                            rocksdb::Env* env = nullptr);
  ~RocksDbStore() override;

  absl::StatusOr<core::State> Load() const override;
  absl::Status Commit(std::span<const v1::Mutation> mutations) override;
  absl::Status AppendSteps(std::span<const v1::StepReport> reports) override;
  absl::StatusOr<std::vector<v1::StepReport>> ReadSteps(const std::string& job_uid,
                                                        int64_t from_step,
                                                        int64_t limit) const override;

 private:
  explicit RocksDbStore(std::string folder);
  absl::Status CheckFormat(bool is_new);

  const std::string folder_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ColumnFamilyHandle* state_ = nullptr;  // destroyed through db_, before it
  rocksdb::ColumnFamilyHandle* steps_ = nullptr;
  // A sync failed: what is on the disk is unknown, and no later commit may pretend otherwise.
  std::atomic<bool> has_failed_ = false;
};

}  // namespace mega::state
