#include "coordinator/state/commit_thread.h"

#include <chrono>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace mega::state {
namespace {

// One Commit call: enough to fill a disk's queue, few enough that the first does not wait long.
constexpr size_t kMutationsPerCommit = 4096;

}  // namespace

CommitThread::CommitThread(StateStore& store, Callbacks callbacks)
    : store_(store), callbacks_(std::move(callbacks)), thread_([this] { Run(); }) {}

CommitThread::~CommitThread() {
  MutexLock lock(mu_);
  stop_ = true;
  wake_.NotifyAll();
}

void CommitThread::Submit(int64_t number, std::vector<v1::Mutation> mutations) {
  MutexLock lock(mu_);
  if (!waiting_.empty()) MEGA_CHECK_LT(waiting_.back().number, number);
  waiting_.push_back({number, std::move(mutations)});
  wake_.NotifyAll();
}

void CommitThread::Run() {
  while (true) {
    std::vector<Batch> batches;
    {
      MutexLock lock(mu_);
      while (waiting_.empty() && !stop_) wake_.WaitFor(mu_, std::chrono::seconds(1));
      if (waiting_.empty()) return;
      batches.swap(waiting_);
    }
    for (size_t first = 0; first < batches.size();) {
      std::vector<v1::Mutation> together;
      size_t last = first;
      for (; last < batches.size() && together.size() < kMutationsPerCommit; ++last) {
        std::move(batches[last].mutations.begin(), batches[last].mutations.end(),
                  std::back_inserter(together));
      }
      const auto start = std::chrono::steady_clock::now();
      if (absl::Status status = together.empty() ? absl::OkStatus() : store_.Commit(together);
          !status.ok()) {
        callbacks_.failed(
            Annotate(status, fmt::format("committing batch {}", batches[first].number)));
        return;
      }
      if (callbacks_.measured && !together.empty()) {
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
        callbacks_.measured(spent.count());
      }
      callbacks_.durable(batches[last - 1].number);
      first = last;
    }
  }
}

}  // namespace mega::state
