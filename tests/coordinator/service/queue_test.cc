// The queue and namespaces as clients see them.
#include "base/clock.h"
#include "coordinator/service/queue_view.h"
#include "gmock/gmock.h"
#include "tests/coordinator/service/fake_worker.h"
#include "tests/coordinator/service/fixture.h"

namespace mega::service {
namespace {

using ::testing::HasSubstr;
using Command = v1::Command;

class QueueTest : public ServiceTest {
 protected:
  void SetUp() override { StartCoordinator(); }

  v1::ListQueueResponse Queue(int32_t page_size = 0, const std::string& token = "") {
    v1::ListQueueRequest request;
    request.set_parent("namespaces/-");
    request.set_page_size(page_size);
    request.set_page_token(token);
    v1::ListQueueResponse queue;
    const grpc::Status status = jobs_->ListQueue(Context().get(), request, &queue);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return queue;
  }
  // Positions are published with the next tick.
  v1::ListQueueResponse AwaitQueue(int size) {
    const absl::Time end = absl::Now() + kPatience;
    v1::ListQueueResponse queue = Queue();
    while (queue.entries_size() != size && absl::Now() < end) queue = Queue();
    EXPECT_EQ(queue.entries_size(), size);
    return queue;
  }
  v1::SubmitJobRequest WithPriority(const std::string& name, int ranks, int64_t priority) {
    v1::SubmitJobRequest request = Request(name, ranks);
    request.mutable_spec()->mutable_scheduling()->set_priority(priority);
    return request;
  }
  v1::Namespace SetLimits(const v1::Namespace& limits) {
    v1::UpdateNamespaceRequest request;
    *request.mutable_namespace_() = limits;
    v1::Namespace set;
    const grpc::Status status = cluster_->UpdateNamespace(Context().get(), request, &set);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return set;
  }
};

TEST_F(QueueTest, ListsWhoWaitsWithPriorityDevicesAndReasonPageByPage) {
  MustSubmit(WithPriority("low", 1, -3));
  MustSubmit(WithPriority("high", 2, 3));
  const v1::ListQueueResponse queue = AwaitQueue(2);
  EXPECT_EQ(queue.entries(0).metadata().name(), "high");
  EXPECT_EQ(queue.entries(0).position(), 1);
  EXPECT_EQ(queue.entries(0).priority(), 3);
  EXPECT_EQ(queue.entries(0).devices(), 2);
  EXPECT_THAT(queue.entries(0).reason(), HasSubstr("no node has a free device"));
  EXPECT_TRUE(queue.entries(0).has_queue_time());
  EXPECT_EQ(queue.entries(1).metadata().name(), "low");

  const v1::ListQueueResponse first = Queue(1);
  ASSERT_EQ(first.entries_size(), 1);
  const v1::ListQueueResponse second = Queue(1, first.next_page_token());
  ASSERT_EQ(second.entries_size(), 1);
  EXPECT_EQ(second.entries(0).metadata().name(), "low");
  EXPECT_TRUE(second.next_page_token().empty());
}

TEST_F(QueueTest, AJobTooLargeForTheFleetIsPassed) {
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  ASSERT_TRUE(worker.AwaitLease(0));
  MustSubmit(Request("huge", 3));
  MustSubmit(Request("small", 1));
  Command start;
  ASSERT_TRUE(worker.AwaitCommand(Command::kStartRanks, &start));
  EXPECT_EQ(start.start_ranks().job_name(), "small");
  const v1::ListQueueResponse queue = AwaitQueue(1);
  EXPECT_THAT(queue.entries(0).reason(), HasSubstr("even idle: the job needs 3 devices"));
  EXPECT_FALSE(queue.entries(0).has_estimated_start_time());
}

TEST_F(QueueTest, APlanSaysWhereItWouldWaitAndWhoWouldGiveWay) {
  FakeWorker worker("w0", 1);
  worker.Connect(address());
  MustSubmit(Request("low", 1));
  Command start;
  ASSERT_TRUE(worker.AwaitCommand(Command::kStartRanks, &start));
  const auto plan = [&](int64_t priority) {
    v1::PlanJobRequest request;
    *request.mutable_metadata() = WithPriority("next", 1, priority).metadata();
    *request.mutable_spec() = WithPriority("next", 1, priority).spec();
    v1::PlanJobResponse response;
    const grpc::Status status = jobs_->PlanJob(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.queue();
  };
  EXPECT_EQ(plan(0).preempts_size(), 0);
  EXPECT_EQ(plan(0).position(), 1);
  ASSERT_EQ(plan(1).preempts_size(), 1);
  EXPECT_EQ(plan(1).preempts(0), GetJob("low").name());
}

TEST_F(QueueTest, NamespacesAreSetListedAndDeleted) {
  v1::Namespace limits;
  limits.set_name("team");
  limits.set_max_jobs(1);
  SetLimits(limits);
  v1::SubmitJobRequest request = Request("one");
  request.mutable_metadata()->set_namespace_("team");
  MustSubmit(request);
  v1::SubmitJobRequest second = Request("two");
  second.mutable_metadata()->set_namespace_("team");
  v1::Job job;
  const grpc::Status full = Submit(second, &job);
  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ErrorInfoOf(full).reason(), "NAMESPACE_FULL");

  v1::ListNamespacesResponse all;
  ASSERT_TRUE(cluster_->ListNamespaces(Context().get(), v1::ListNamespacesRequest(), &all).ok());
  ASSERT_EQ(all.namespaces_size(), 1);
  EXPECT_EQ(all.namespaces(0).max_jobs(), 1);

  v1::DeleteNamespaceRequest remove;
  remove.set_name("team");
  v1::DeleteNamespaceResponse removed;
  EXPECT_EQ(cluster_->DeleteNamespace(Context().get(), remove, &removed).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  ASSERT_TRUE(Cancel("one", &job).ok());
  EXPECT_TRUE(cluster_->DeleteNamespace(Context().get(), remove, &removed).ok());
}

// Case: the whole queue was forecast for each page, on a thread that carries messages.
TEST(FullCoordinator, RefusesWhatItWouldHaveToThinkAboutAndSaysWhenToTryAgain) {
  TempDir dir;
  CoordinatorOptions options;
  options.state_dir = dir.path();
  options.most_checks_waiting = 0;  // the queue of such calls is full
  const auto coordinator = Coordinator::Start(options);
  ASSERT_TRUE(coordinator.ok()) << coordinator.status().ToString();
  const auto jobs = v1::JobService::NewStub(
      grpc::CreateChannel((*coordinator)->address(), grpc::InsecureChannelCredentials()));
  const auto expect_refusal = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(ErrorInfoOf(status).reason(), "OVERLOADED");
    EXPECT_EQ(RetryInfoOf(status).retry_delay().seconds(), 1);
    EXPECT_THAT(status.error_message(), HasSubstr("try again in a second"));
  };
  const v1::SubmitJobRequest submit = ServiceTest::Request("job");
  v1::Job job;
  grpc::ClientContext submit_context;
  expect_refusal(jobs->SubmitJob(&submit_context, submit, &job));
  v1::PlanJobRequest plan;
  *plan.mutable_metadata() = submit.metadata();
  *plan.mutable_spec() = submit.spec();
  v1::PlanJobResponse planned;
  grpc::ClientContext plan_context;
  expect_refusal(jobs->PlanJob(&plan_context, plan, &planned));
  v1::ListQueueResponse queue;
  grpc::ClientContext queue_context;
  expect_refusal(jobs->ListQueue(&queue_context, v1::ListQueueRequest(), &queue));
  // What needs no thought is answered.
  v1::ListJobsResponse all;
  grpc::ClientContext list_context;
  EXPECT_TRUE(jobs->ListJobs(&list_context, v1::ListJobsRequest(), &all).ok());
}

// Estimates.

ReadModel::Unfinished Running(const std::string& name, int64_t devices, absl::Time since,
                              const std::function<void(v1::Job&)>& edit) {
  v1::Job job;
  job.set_uid(name);
  job.set_phase(v1::JOB_PHASE_RUNNING);
  v1::Attempt& attempt = *job.add_attempts();
  attempt.set_state(v1::ATTEMPT_STATE_RUNNING);
  *attempt.mutable_create_time() = ToProto(since);
  for (int64_t i = 0; i < devices; ++i) attempt.add_ranks()->set_node("a");
  edit(job);
  return {.job = std::make_shared<v1::Job>(job)};
}

ReadModel::Unfinished Waiting(const std::string& name, int64_t devices, int64_t position,
                              absl::Duration runtime = absl::ZeroDuration()) {
  v1::Job job;
  job.set_uid(name);
  job.set_phase(v1::JOB_PHASE_QUEUED);
  v1::JobSpec& spec = *job.mutable_resolved_spec();
  spec.mutable_parallelism()->set_data_parallel_size(devices);
  if (runtime > absl::ZeroDuration()) {
    *spec.mutable_scheduling()->mutable_estimated_runtime() = ToProto(runtime);
  }
  job.mutable_create_time()->set_seconds(position);
  return {.job = std::make_shared<v1::Job>(job)};
}

Present OneNode(int64_t devices, absl::Time now) {
  v1::Node node;
  node.set_name("a");
  node.set_state(v1::NODE_STATE_READY);
  for (int64_t i = 0; i < devices; ++i) node.add_devices()->set_index(i);
  return {.jobs = {}, .nodes = {std::make_shared<v1::Node>(node)}, .namespaces = {}, .now = now};
}

std::optional<absl::Duration> StartOf(const Present& present, size_t index) {
  v1::QueueEntry entry;
  size_t left = index;
  VisitQueue(present, [&](v1::QueueEntry next) {
    entry = std::move(next);
    return left-- > 0;
  });
  if (!entry.has_estimated_start_time()) return std::nullopt;
  return FromProto(entry.estimated_start_time()) - present.now;
}

TEST(StartEstimates, FollowFromPaceRuntimeAndLimit) {
  const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  Present present = OneNode(2, now);
  // 11 of 21 steps in 100 s: 10 more take as long.
  present.jobs.push_back(Running("steps", 2, now - absl::Seconds(110), [&](v1::Job& job) {
    v1::Attempt& attempt = *job.mutable_attempts()->rbegin();
    *attempt.mutable_first_step_time() = ToProto(now - absl::Seconds(100));
    attempt.mutable_plan()->set_steps(21);
  }));
  present.jobs.back().last_step = 11;
  present.jobs.push_back(Waiting("next", 1, 1, absl::Minutes(5)));
  present.jobs.push_back(Waiting("large", 2, 2));
  present.jobs.push_back(Waiting("last", 1, 3));
  EXPECT_EQ(StartOf(present, 0), absl::Seconds(100));
  EXPECT_EQ(StartOf(present, 1), absl::Seconds(400));
  EXPECT_EQ(StartOf(present, 2), std::nullopt);  // nobody said how long "large" takes

  Present limited = OneNode(2, now);
  limited.jobs.push_back(Running("limited", 2, now - absl::Minutes(3), [&](v1::Job& job) {
    v1::Scheduling& scheduling = *job.mutable_resolved_spec()->mutable_scheduling();
    *scheduling.mutable_time_limit() = ToProto(absl::Minutes(10));
  }));
  limited.jobs.push_back(Waiting("next", 1, 1));
  EXPECT_EQ(StartOf(limited, 0), absl::Minutes(7));
}

TEST(StartEstimates, TakeTheNodesWithMostFreeAndAtMostAsManyAsAsked) {
  const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  Present present = OneNode(4, now);
  for (const char* name : {"b", "c"}) {
    v1::Node node = *present.nodes[0];
    node.set_name(name);
    node.mutable_devices()->DeleteSubrange(2, 2);
    present.nodes.push_back(std::make_shared<v1::Node>(node));
  }
  const auto on_nodes = [](ReadModel::Unfinished waiting, int64_t nodes, int64_t per_node) {
    v1::Job job = *waiting.job;
    v1::Resources& resources = *job.mutable_resolved_spec()->mutable_resources();
    resources.mutable_nodes()->set_desired(nodes);
    resources.set_devices_per_node(per_node);
    return ReadModel::Unfinished{.job = std::make_shared<v1::Job>(job)};
  };
  present.jobs.push_back(on_nodes(Waiting("first", 5, 1, absl::Minutes(3)), 2, 3));   // a: 3, b: 2
  present.jobs.push_back(on_nodes(Waiting("second", 3, 2, absl::Minutes(1)), 2, 2));  // c: 2, a: 1
  present.jobs.push_back(on_nodes(Waiting("third", 4, 3), 1, 4));                     // all of a
  present.jobs.push_back(on_nodes(Waiting("never", 9, 4), 3, 4));
  EXPECT_EQ(StartOf(present, 0), absl::ZeroDuration());
  EXPECT_EQ(StartOf(present, 1), absl::ZeroDuration());
  EXPECT_EQ(StartOf(present, 2), absl::Minutes(3));
  EXPECT_EQ(StartOf(present, 3), std::nullopt);
}

TEST(StartEstimates, AreMadeForThoseThatAreAskedForAlone) {
  const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  Present present = OneNode(2, now);
  for (int i = 0; i < 10; ++i) present.jobs.push_back(Waiting("job" + std::to_string(i), 1, i));
  int64_t visited = 0;
  VisitQueue(present, [&](const v1::QueueEntry& entry) {
    EXPECT_EQ(entry.position(), ++visited);
    return visited < 3;
  });
  EXPECT_EQ(visited, 3);
}

TEST(StartEstimates, AreBlankWhereNobodyCanSay) {
  const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  Present present = OneNode(2, now);
  present.jobs.push_back(Running("silent", 2, now, [](v1::Job&) {}));
  present.jobs.push_back(Waiting("next", 1, 1));
  EXPECT_EQ(StartOf(present, 0), std::nullopt);
  Present huge = OneNode(2, now);
  huge.jobs.push_back(Waiting("huge", 9, 1));
  huge.jobs.push_back(Waiting("small", 1, 2));
  EXPECT_EQ(StartOf(huge, 0), std::nullopt);
  EXPECT_EQ(StartOf(huge, 1), absl::ZeroDuration());  // passes it
}

}  // namespace
}  // namespace mega::service
