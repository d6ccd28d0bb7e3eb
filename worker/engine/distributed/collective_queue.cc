#include "worker/engine/distributed/collective_queue.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace mega::distributed {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long cancelled transfers may take before their connections are dropped, and how long to wait
// for those at most.
constexpr auto kCancelFor = milliseconds(100);
constexpr auto kDisconnectFor = milliseconds(1000);
constexpr auto kFarewellFor = milliseconds(500);
// Sums of timeouts stay far from the end of the clock.
constexpr absl::Duration kLongestTimeout = absl::Hours(24 * 30);

}  // namespace

CollectiveQueue::CollectiveQueue(Group group, Link& link, absl::Duration timeout,
                                 std::shared_ptr<std::atomic<int>> waiters)
    : group_(std::move(group)),
      link_(link),
      waiters_(std::move(waiters)),
      timeout_(std::min(timeout, kLongestTimeout)),
      sent_to_(group_.size(), 0),
      received_from_(group_.size(), 0),
      aborts_in_(group_.size()),
      abort_sends_(group_.size()),
      abort_recvs_(group_.size()),
      departed_(group_.size(), false) {}

void CollectiveQueue::Open() {
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.me) continue;
    link_.Recv(group_.ranks[i], MakeTag(group_.id, group_.ranks[i], Channel::kAbort, 0, 0),
               std::as_writable_bytes(std::span(&aborts_in_[i], 1)), abort_recvs_[i]);
  }
}

Work CollectiveQueue::Issue(const OperationSpec& spec) {
  MutexLock lock(mu_);
  int64_t sequence = 0;
  if (spec.kind == OperationKind::kSend) {
    sequence = ++sent_to_[spec.peer];
  } else if (spec.kind == OperationKind::kRecv) {
    sequence = ++received_from_[spec.peer];
  } else {
    sequence = sequence_.load(std::memory_order_relaxed) + 1;
    sequence_.store(sequence, std::memory_order_relaxed);
  }
  latest_ = std::max(latest_, steady_clock::now()) + absl::ToChronoNanoseconds(timeout_);
  auto state = std::make_shared<Work::State>(fmt::format("{}: {}", group_.name, NameOf(spec.kind)),
                                             sequence, timeout_, latest_, waiters_);
  if (!failed_.ok()) {
    state->Finish(failed_);
  } else {
    issued_.push_back(std::make_unique<Operation>(group_, link_, spec, sequence, state));
    posted_.store(true, std::memory_order_release);
  }
  return Work(std::move(state));
}

void CollectiveQueue::SetTimeout(absl::Duration timeout) {
  MutexLock lock(mu_);
  timeout_ = std::min(timeout, kLongestTimeout);
}

void CollectiveQueue::Abort(absl::Status why) {
  MEGA_CHECK(!why.ok());
  MutexLock lock(mu_);
  if (!failed_.ok()) return;
  failed_ = why;
  abort_ = std::move(why);
  posted_.store(true, std::memory_order_release);
}

bool CollectiveQueue::Progress() {
  if (posted_.load(std::memory_order_acquire)) TakeIssued();
  bool moved = TakeAborts();
  moved |= ProgressAll(queue_, /*one_at_a_time=*/true);
  moved |= ProgressAll(pairs_, /*one_at_a_time=*/false);
  CheckDeadlines(moved);
  moved |= SettleFailing();
  return moved;
}

void CollectiveQueue::TakeIssued() {
  std::vector<std::unique_ptr<Operation>> issued;
  absl::Status abort;
  {
    MutexLock lock(mu_);
    posted_.store(false, std::memory_order_relaxed);
    issued.swap(issued_);
    abort = std::exchange(abort_, absl::OkStatus());
  }
  for (std::unique_ptr<Operation>& operation : issued) {
    const OperationKind kind = operation->header().kind;
    if (loop_failed_) {
      operation->state().Finish(failing_why_);
    } else if (kind == OperationKind::kSend || kind == OperationKind::kRecv) {
      operation->Start(scratch_);
      pairs_.push_back(std::move(operation));
    } else {
      queue_.push_back(std::move(operation));
      if (queue_.size() == 1) queue_.front()->Start(scratch_);
    }
  }
  if (!abort.ok() && !loop_failed_) Fail(std::move(abort), /*tell_peers=*/true);
}

bool CollectiveQueue::TakeAborts() {
  bool moved = false;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.me || departed_[i] || abort_recvs_[i].active) continue;
    departed_[i] = true;  // one message is all there ever is; a failed receive is a lost peer
    moved = true;
    if (!abort_recvs_[i].status.ok() || loop_failed_) continue;
    AbortMessage& message = aborts_in_[i];
    if (message.farewell) continue;
    message.text.back() = '\0';
    const auto code = static_cast<absl::StatusCode>(message.code);
    Fail(absl::Status(code == absl::StatusCode::kOk ? absl::StatusCode::kAborted : code,
                      fmt::format("{}: ended by rank {}: {}", group_.name, group_.ranks[i],
                                  message.text.data())),
         /*tell_peers=*/false);
  }
  return moved;
}

bool CollectiveQueue::ProgressAll(Operations& operations, bool one_at_a_time) {
  bool moved = false;
  for (size_t i = 0; i < operations.size();) {
    Operation& operation = *operations[i];
    moved |= operation.Progress();
    if (!operation.failure().ok()) {
      Fail(operation.failure(), /*tell_peers=*/true);
      return true;
    }
    if (operation.complete()) {
      bytes_sent_.fetch_add(operation.bytes_sent(), std::memory_order_relaxed);
      operation.state().Finish(absl::OkStatus());
      operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(i));
      moved = true;
      if (one_at_a_time && !operations.empty()) operations.front()->Start(scratch_);
    } else {
      if (one_at_a_time) break;
      ++i;
    }
  }
  return moved;
}

// Not OK when the operation waits for a rank that is gone.
absl::Status CollectiveQueue::LostPeer(const Operation& operation) const {
  for (const int64_t rank : operation.AwaitedRanks(/*headers=*/false)) {
    const size_t i = std::ranges::find(group_.ranks, rank) - group_.ranks.begin();
    absl::Status lost = link_.PeerStatus(rank);
    if (lost.ok() && departed_[i]) lost = absl::UnavailableError("it has left");
    if (!lost.ok())
      return Unavailable("{}: {}: rank {} is lost: {}", group_.name, operation.Describe(), rank,
                         std::string(lost.message()));
  }
  return absl::OkStatus();
}

void CollectiveQueue::CheckDeadlines(bool moved) {
  const auto now = steady_clock::now();
  if ((queue_.empty() && pairs_.empty()) || now < next_check_) return;
  next_check_ = now + milliseconds(1);
  // What a lost peer had sent may still be arriving: give up only when nothing moves.
  for (const Operations* operations : {&queue_, &pairs_}) {
    for (const std::unique_ptr<Operation>& operation : *operations) {
      absl::Status lost = moved ? absl::OkStatus() : LostPeer(*operation);
      if (!lost.ok()) return Fail(std::move(lost), /*tell_peers=*/true);
      if (operations == &queue_) break;  // only the first has started
    }
  }
  for (const Operations* operations : {&queue_, &pairs_}) {
    if (operations->empty() || now < operations->front()->state().deadline()) continue;
    Operation& operation = *operations->front();
    std::vector<int64_t> missing = operation.AwaitedRanks(/*headers=*/true);
    const bool entered = missing.empty();
    if (entered) missing = operation.AwaitedRanks(/*headers=*/false);
    return Fail(
        absl::DeadlineExceededError(fmt::format(
            "{}: {}: {} within {}: {}; look at the stack and the log of that rank", group_.name,
            operation.Describe(), entered ? "did not end" : "was not entered by every rank",
            absl::FormatDuration(operation.state().timeout()),
            entered ? "waiting for data of " + NameRanks(missing)
                    : "missing " + NameRanks(missing))),
        /*tell_peers=*/true);
  }
}

void CollectiveQueue::Fail(absl::Status why, bool tell_peers) {
  if (loop_failed_) return;
  loop_failed_ = true;
  failing_why_ = why;
  failing_since_ = steady_clock::now();
  {
    MutexLock lock(mu_);
    if (failed_.ok()) failed_ = why;
  }
  for (Operations* operations : {&queue_, &pairs_}) {
    for (std::unique_ptr<Operation>& operation : *operations) {
      operation->Cancel();
      failing_.push_back(std::move(operation));
    }
    operations->clear();
  }
  if (tell_peers) SendAborts(why, /*farewell=*/false);
}

void CollectiveQueue::SendAborts(const absl::Status& why, bool farewell) {
  abort_out_.code = static_cast<int32_t>(why.code());
  abort_out_.farewell = farewell;
  const size_t length = std::min(why.message().size(), abort_out_.text.size() - 1);
  std::copy_n(why.message().begin(), length, abort_out_.text.begin());  // may be empty
  abort_out_.text[length] = '\0';
  for (int i = 0; i < group_.size(); ++i) {
    const int64_t rank = group_.ranks[i];
    if (i == group_.me || abort_sends_[i].active || !link_.PeerStatus(rank).ok()) continue;
    link_.Send(rank, MakeTag(group_.id, group_.ranks[group_.me], Channel::kAbort, 0, 0),
               std::as_writable_bytes(std::span(&abort_out_, 1)), abort_sends_[i]);
  }
}

// A Work ends when no transfer holds its buffers any more, so the caller may free them.
bool CollectiveQueue::SettleFailing() {
  if (failing_.empty()) return false;
  const auto waited = steady_clock::now() - failing_since_;
  if (!std::ranges::all_of(failing_, [](const auto& operation) { return operation->quiet(); })) {
    if (waited > kCancelFor && !disconnected_) {
      disconnected_ = true;
      std::vector<int64_t> awaited;
      for (const auto& operation : failing_)
        std::ranges::copy(operation->AwaitedRanks(/*headers=*/false), std::back_inserter(awaited));
      link_.Disconnect(awaited);
    }
    if (waited < kDisconnectFor) return false;
  }
  for (std::unique_ptr<Operation>& operation : failing_) {
    operation->state().Finish(failing_why_);
    if (!operation->quiet()) abandoned_.push_back(std::move(operation));
  }
  failing_.clear();
  return true;
}

bool CollectiveQueue::quiet() const {
  return failing_.empty() && std::ranges::none_of(abort_sends_, &Transfer::active) &&
         std::ranges::none_of(abort_recvs_, &Transfer::active) &&
         std::ranges::all_of(abandoned_, [](const auto& operation) { return operation->quiet(); });
}

void CollectiveQueue::Close() {
  TakeIssued();
  if (!queue_.empty() || !pairs_.empty())
    Fail(absl::CancelledError(fmt::format("{}: closed while {} was pending", group_.name,
                                          (queue_.empty() ? pairs_ : queue_).front()->Describe())),
         /*tell_peers=*/true);
  if (!loop_failed_) {
    loop_failed_ = true;
    SendAborts(absl::OkStatus(), /*farewell=*/true);
  }
  for (Transfer& transfer : abort_recvs_)
    if (transfer.active) link_.Cancel(transfer);
  for (const bool drop : {false, true}) {
    if (drop && !quiet()) link_.Disconnect(group_.ranks);
    const auto until = steady_clock::now() + kFarewellFor;
    while (!quiet() && steady_clock::now() < until) {
      link_.Progress();
      SettleFailing();
    }
  }
}

CollectiveQueue::~CollectiveQueue() {
  // A link that will not let go still knows addresses inside: better leaked than written to when
  // freed. Seen never; the process is about to end.
  for (std::unique_ptr<Operation>& operation : abandoned_)
    if (!operation->quiet()) (void)operation.release();
}

}  // namespace mega::distributed
