// The StateStore on RocksDB. Keys are in coordinator/state/README.md.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "coordinator/state/durable_mark.h"
#include "coordinator/state/state_store.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Env;
class WriteBatch;
}  // namespace rocksdb

namespace mega::state {

class RocksDbStore : public StateStore {
 public:
  // Opens or creates the database in `folder`. FAILED_PRECONDITION when another process has it open
  // or a newer release wrote it; DATA_LOSS when it is damaged. `env` is for tests; it outlives
  // this. DATA_LOSS too where a database was and is no more. accept_loss: Load takes a state that
  // lacks acknowledged changes (else DATA_LOSS), and skips the numbers that they may have used. The
  // mark of them is FOLDER.revision.
  static absl::StatusOr<std::unique_ptr<RocksDbStore>> Open(const std::string& folder,
                                                            rocksdb::Env* env = nullptr,
                                                            bool accept_loss = false);
  ~RocksDbStore() override;

  absl::StatusOr<core::State> Load() const override;
  absl::Status Commit(std::span<const v1::Mutation> mutations) override;
  absl::Status AppendSteps(std::span<const v1::StepReport> reports) override;
  absl::StatusOr<std::vector<v1::StepReport>> ReadSteps(const std::string& job_uid,
                                                        int64_t from_step,
                                                        int64_t limit) const override;
  absl::StatusOr<std::optional<v1::StepReport>> NewestStep(const std::string& job_uid,
                                                           int64_t epoch,
                                                           int64_t after_step) const override;

 private:
  RocksDbStore(std::string folder, bool accept_loss);
  absl::Status CheckMayBegin(bool has_data);
  absl::Status CheckFormat(bool is_new);
  absl::Status CheckPromises(v1::Meta& meta) const;
  absl::Status Write(rocksdb::WriteBatch& batch, bool sync, std::string_view what)
      MEGA_EXCLUDES(write_mu_);

  const std::string folder_;
  const bool accept_loss_;
  DurableMark mark_;  // the committing thread's
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ColumnFamilyHandle* state_ = nullptr;  // destroyed through db_, before it
  rocksdb::ColumnFamilyHandle* steps_ = nullptr;
  Mutex write_mu_;
  // Of the first write or sync that failed: what is on the disk is unknown, and no later one may
  // pretend otherwise.
  absl::Status failure_ MEGA_GUARDED_BY(write_mu_);
};

}  // namespace mega::state
