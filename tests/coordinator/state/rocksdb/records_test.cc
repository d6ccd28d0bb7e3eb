#include "coordinator/state/rocksdb/records.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/write_batch.h"

namespace mega::state {
namespace {

using testing::HasSubstr;

// Case: a job of more than 2 GiB was stored as an empty record, and was gone at the next start.
TEST(Records, OneThatIsTooLargeIsAnErrorAndNotEmpty) {
  rocksdb::WriteBatch batch;
  Records records(batch, nullptr, nullptr, /*most_bytes=*/1000);
  v1::Mutation mutation;
  mutation.mutable_put_job()->set_uid("uid");
  EXPECT_EQ(records.Add(mutation), absl::OkStatus());
  EXPECT_EQ(batch.Count(), 1);
  mutation.mutable_put_job()->set_reason(std::string(1000, 'x'));
  const absl::Status status = records.Add(mutation);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("mega.v1.Job has 1008 bytes"));
  EXPECT_EQ(batch.Count(), 1);
}

}  // namespace
}  // namespace mega::state
