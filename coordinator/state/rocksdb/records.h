// Mutations as records: what a batch for RocksDB is made of.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "google/protobuf/message.h"
#include "mega/v1/coordinator.pb.h"
#include "mega/v1/telemetry.pb.h"

namespace rocksdb {
class ColumnFamilyHandle;
class WriteBatch;
}  // namespace rocksdb

namespace mega::state {

class Records {
 public:
  // A message's own limit: nothing is written of a larger one, and an empty record would be read as
  // a job of which all is unset.
  static constexpr size_t kMostBytes = INT32_MAX;

  Records(rocksdb::WriteBatch& batch, rocksdb::ColumnFamilyHandle* state,
          rocksdb::ColumnFamilyHandle* steps, size_t most_bytes = kMostBytes)
      : batch_(batch), state_(state), steps_(steps), most_bytes_(most_bytes) {}

  // RESOURCE_EXHAUSTED: a record is too large. The batch must not be written then.
  absl::Status Add(const v1::Mutation& mutation);
  absl::Status Add(const v1::StepReport& report);

 private:
  absl::Status Put(rocksdb::ColumnFamilyHandle* family, const std::string& key,
                   const google::protobuf::Message& record);
  absl::Status Delete(const std::string& key);

  rocksdb::WriteBatch& batch_;
  rocksdb::ColumnFamilyHandle* const state_;
  rocksdb::ColumnFamilyHandle* const steps_;
  const size_t most_bytes_;
};

}  // namespace mega::state
