// Where a watch may go on once old events are gone: exactly from what was the newest of those.
#include "base/clock.h"
#include "coordinator/core/state.h"
#include "coordinator/state/memory_store.h"
#include "gmock/gmock.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

constexpr int64_t kApart = 10;  // other jobs' events lie between
constexpr int64_t kGone = 3;    // events that were deleted

class EventsTest : public ServiceTest {
 protected:
  void TearDown() override { StopCoordinator(); }                      // before the store goes
  static int64_t Revision(int64_t number) { return kApart * number; }  // of the job's n-th event

  // A job with as many events as are kept, after the first few were deleted.
  void Fill(size_t events) {
    std::vector<v1::Mutation> mutations(1);
    v1::Job& job = *mutations[0].mutable_put_job();
    job.set_uid("long-1");
    job.set_name("namespaces/default/jobs/long-1");
    job.mutable_metadata()->set_name("long");
    job.mutable_metadata()->set_namespace_("default");
    job.set_phase(v1::JOB_PHASE_SUCCEEDED);
    *job.mutable_create_time() = *job.mutable_end_time() = ToProto(absl::Now());
    const int64_t last = kGone + static_cast<int64_t>(events);
    for (int64_t n = kGone + 1; n <= last; ++n) {
      v1::JobEvent& event = *mutations.emplace_back().mutable_put_event();
      event.set_job_uid("long-1");
      event.set_revision(Revision(n));
    }
    mutations.emplace_back().mutable_put_meta()->set_revision(Revision(last));
    ASSERT_TRUE(store_.Commit(mutations).ok());
  }
  // The end of a watch from there, and how many events came before it.
  grpc::Status Watch(int64_t from, size_t* count) {
    v1::WatchEventsRequest request;
    request.set_name("long");
    request.set_from_revision(from);
    const auto context = Context();
    const auto reader = jobs_->WatchEvents(context.get(), request);
    *count = 0;
    for (v1::JobEvent event; reader->Read(&event);) ++*count;
    return reader->Finish();
  }

  state::MemoryStore store_;
};

TEST_F(EventsTest, WhoHasSeenTheNewestThatIsGoneMissesNothing) {
  Fill(core::kEventsPerJob + 1);  // the oldest is the mark
  StartCoordinator(&store_);
  size_t count = 0;
  grpc::Status status = Watch(Revision(kGone + 1), &count);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(count, core::kEventsPerJob);

  status = Watch(Revision(kGone), &count);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(ErrorInfoOf(status).reason(), "REVISION_COMPACTED");
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("up to revision 40 are gone"));
  EXPECT_EQ(count, 0u);
  EXPECT_TRUE(Watch(0, &count).ok());
  EXPECT_EQ(count, core::kEventsPerJob);
}

TEST_F(EventsTest, WithoutAMarkAGapIsAssumed) {
  Fill(core::kEventsPerJob);
  StartCoordinator(&store_);
  size_t count = 0;
  EXPECT_EQ(Watch(Revision(kGone), &count).error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_TRUE(Watch(Revision(kGone + 1), &count).ok());
  EXPECT_EQ(count, core::kEventsPerJob - 1);
  EXPECT_TRUE(Watch(0, &count).ok());
  EXPECT_EQ(count, core::kEventsPerJob);
}

}  // namespace
}  // namespace mega::service
