// Batches become durable in order; after a failure none does.
#include "coordinator/state/commit_thread.h"

#include <atomic>
#include <future>

#include "coordinator/state/memory_store.h"
#include "gtest/gtest.h"

namespace mega::state {
namespace {

std::vector<v1::Mutation> PutNode(const std::string& name) {
  std::vector<v1::Mutation> mutations(1);
  mutations[0].mutable_put_node()->set_name(name);
  return mutations;
}

// Waits in its first commit until it may go on; fails the one it is told to.
class GatedStore : public MemoryStore {
 public:
  absl::Status Commit(std::span<const v1::Mutation> mutations) override {
    if (commits == 0) {
      started.set_value();
      gate.get_future().wait();
    }
    ++commits;
    if (commits == fail_at) return Unavailable("the disk is gone");
    return MemoryStore::Commit(mutations);
  }
  std::promise<void> started, gate;
  std::atomic<int> commits = 0;
  int fail_at = 0;
};

TEST(CommitThread, BatchesThatWaitTogetherAreOneCommit) {
  GatedStore store;
  std::vector<int64_t> durable;
  {
    CommitThread thread(store, {.durable = [&](int64_t number) { durable.push_back(number); }});
    thread.Submit(1, PutNode("a"));
    store.started.get_future().wait();
    for (int64_t n = 2; n <= 100; ++n) thread.Submit(n, PutNode("n" + std::to_string(n)));
    thread.Submit(101, {});
    store.gate.set_value();
  }
  EXPECT_EQ(durable, (std::vector<int64_t>{1, 101}));
  EXPECT_EQ(store.commits, 2);
  EXPECT_EQ(store.Load()->durable.nodes.size(), 100u);
}

TEST(CommitThread, NothingIsDurableAfterAFailure) {
  GatedStore store;
  store.fail_at = 2;
  std::vector<int64_t> durable;
  std::vector<absl::Status> failures;
  {
    CommitThread thread(store, {.durable = [&](int64_t number) { durable.push_back(number); },
                                .failed = [&](absl::Status why) { failures.push_back(why); }});
    thread.Submit(1, PutNode("a"));
    store.started.get_future().wait();
    thread.Submit(2, PutNode("b"));
    store.gate.set_value();
  }
  CommitThread idle(store, {});
  EXPECT_EQ(durable, std::vector<int64_t>{1});
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_NE(failures[0].message().find("batch 2"), absl::string_view::npos) << failures[0];
  EXPECT_FALSE(store.Load()->durable.nodes.contains("b"));
}

TEST(CommitThread, AnEmptyBatchNeedsNoDisk) {
  GatedStore store;
  std::promise<int64_t> durable;
  CommitThread thread(store, {.durable = [&](int64_t number) { durable.set_value(number); }});
  thread.Submit(5, {});
  EXPECT_EQ(durable.get_future().get(), 5);
  EXPECT_EQ(store.commits, 0);
}

}  // namespace
}  // namespace mega::state
