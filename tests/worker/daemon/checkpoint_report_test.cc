#include "worker/daemon/checkpoint_report.h"

#include "base/message_size.h"
#include "gtest/gtest.h"

namespace mega::daemon {
namespace {

TEST(CheckpointReport, CarriesThePartUnderItsRanksName) {
  v1::CheckpointPart part;
  part.set_step(7);
  const v1::WorkerMessage message = CheckpointReport({"uid", 2, 3, 4}, part);
  EXPECT_EQ(message.checkpoint_part().job_uid(), "uid");
  EXPECT_EQ(message.checkpoint_part().attempt(), 2);
  EXPECT_EQ(message.checkpoint_part().epoch(), 3);
  EXPECT_EQ(message.checkpoint_part().rank(), 4);
}

TEST(CheckpointReport, ATooLargePartIsAFailedSave) {
  v1::CheckpointPart part;
  part.set_step(7);
  part.add_slices()->set_tensor(std::string(kMostMessageBytes / 2, 'x'));
  const v1::WorkerMessage message = CheckpointReport({"uid", 2, 3, 4}, std::move(part));
  ASSERT_TRUE(message.has_checkpoint_failed());
  EXPECT_EQ(message.checkpoint_failed().step(), 7);
  EXPECT_EQ(message.checkpoint_failed().rank().rank(), 4);
}

}  // namespace
}  // namespace mega::daemon
