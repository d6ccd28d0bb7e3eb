#include "worker/daemon/session.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"

namespace mega::daemon {
namespace {

// A coordinator that says nothing for this long is dialled anew: half of a connection may be dead.
constexpr absl::Duration kSilence = absl::Seconds(5);
// No sleep is longer, so that a machine that was suspended notices soon.
constexpr absl::Duration kLongestWait = absl::Milliseconds(200);
// A word counts as heard once a heartbeat sent this much later was answered: mostly the coordinator
// has made durable what it was told by then, but a slow disk of its shows no such haste.
constexpr absl::Duration kHeardAfter = absl::Seconds(3);
constexpr size_t kReceipts = 64;
constexpr size_t kMostInputs = 256;

}  // namespace

Session::Session(Coordinator coordinator, lease::Options options, const Clock& clock,
                 Callbacks callbacks)
    : coordinator_(std::move(coordinator)), clock_(clock), callbacks_(std::move(callbacks)) {
  lease_.options = options;
  no_session_from_ns_ = absl::ToInt64Nanoseconds(lease::NoSessionFrom(lease_));
}

void Session::Start() {
  thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

Session::~Session() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  changed_.NotifyAll();
  thread_.join();
}

void Session::Send(v1::WorkerMessage message) {
  MutexLock lock(mu_);
  if (sending_ == nullptr) return;
  if (!sending_->Send(std::move(message))) redial_ = true;
}

void Session::Redial() {
  MutexLock lock(mu_);
  redial_ = true;
  changed_.NotifyAll();
}

void Session::Goodbye(const std::string& reason, absl::Duration wait) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(wait);
  MutexLock lock(mu_);
  leaving_ = true;
  if (sending_ == nullptr) return;
  v1::WorkerMessage message;
  message.mutable_goodbye()->set_reason(reason);
  sending_->Send(std::move(message));
  sending_->Close();
  // The coordinator answers the half-closed call by ending it.
  while (sending_ != nullptr && changed_.WaitUntil(mu_, deadline)) {
  }
}

void Session::Feed(lease::Input input) {
  MutexLock lock(mu_);
  if (inputs_.size() >= kMostInputs) return;
  inputs_.push_back(std::move(input));
  changed_.NotifyAll();
}

bool Session::Relay(v1::RelayedHeartbeat heartbeat) {
  v1::WorkerMessage message;
  *message.mutable_relayed_heartbeat() = std::move(heartbeat);
  MutexLock lock(mu_);
  if (sending_ == nullptr || !connected_.load()) return false;
  return sending_->SendForAnother(std::move(message));
}

bool Session::HasNoSession() const {
  return absl::ToInt64Nanoseconds(clock_.BootNow()) >= no_session_from_ns_.load();
}

bool Session::MayRun() const {
  return absl::ToInt64Nanoseconds(clock_.BootNow()) < lease_end_ns_.load();
}

absl::Duration Session::lease_remaining() const {
  return std::max(absl::ZeroDuration(), absl::Nanoseconds(lease_end_ns_.load()) - clock_.BootNow());
}

void Session::Dial(absl::Duration now) {
  const lease::Decision decision = lease::Step(lease_, lease::HelloDue{}, now);
  heard_at_ = now;
  receipts_.clear();
  refusal_.clear();
  cut_.clear();
  // Under the lock from the snapshot to the publication of the stream: whatever happens meanwhile
  // is either in the snapshot or sent after it.
  MutexLock lock(mu_);
  std::vector<v1::WorkerMessage> words = callbacks_.introduce();
  words.front().mutable_hello()->set_heartbeat_seq(*decision.send);
  words.front().mutable_hello()->set_acked_witness_set(lease_.witnesses.number());
  stream_ = std::make_unique<SessionStream>(
      coordinator_, words.front(),
      SessionStream::Callbacks{.message =
                                   [this](v1::CoordinatorMessage message) {
                                     MutexLock inner(mu_);
                                     inbox_.push_back(std::move(message));
                                     changed_.NotifyAll();
                                   },
                               .ended =
                                   [this](absl::Status status) {
                                     MutexLock inner(mu_);
                                     ended_ = std::move(status);
                                     changed_.NotifyAll();
                                   }});
  for (size_t i = 1; i < words.size(); ++i) stream_->Send(std::move(words[i]));
  sending_ = stream_.get();
}

void Session::HangUp(const absl::Status& why, bool leaving, absl::Duration now) {
  const bool was_connected = connected_.exchange(false);
  callbacks_.down();
  if (leaving) {
    log::Debug("the session is over");
  } else {
    const std::string reason = cut_.empty() ? std::string(why.message()) : cut_;
    if (was_connected) {
      log::Warn("the session with the coordinator ended; dialling again",
                {{"coordinator", coordinator_.address}, {"why", reason}});
    } else {
      TellOutage(reason, now);
    }
  }
  Obey(lease::Step(lease_, lease::SessionDown{}, now), now);
  dial_at_ = now + backoff_.Next();
}

// A worker that cannot join looks like one that works, unless it says so where people look.
void Session::TellOutage(const std::string& why, absl::Duration now) {
  const bool is_refused = !refusal_.empty();
  if (!outage_.Due(is_refused ? OutageNotice::Kind::kRefused : OutageNotice::Kind::kUnreachable,
                   now)) {
    log::Debug("no session", {{"coordinator", coordinator_.address}, {"why", why}});
  } else if (is_refused) {
    log::Error("the coordinator does not take this worker now; trying on",
               {{"coordinator", coordinator_.address}, {"why", refusal_}});
  } else {
    log::Warn("cannot reach the coordinator; trying on until it answers",
              {{"coordinator", coordinator_.address}, {"why", why}});
  }
}

void Session::TakeLease(const v1::Lease& lease, absl::Duration now) {
  const absl::StatusOr<bool> is_new = callbacks_.join(lease.cluster_id());
  if (!is_new.ok()) {
    // As if nobody had answered: the ranks live by the lease that they have.
    refusal_ = std::string(is_new.status().message());
    stream_->Cancel();
    return;
  }
  if (*is_new) {  // sets of witnesses are numbered anew
    log::Info("this worker is of another cluster now; what it kept of the one before is dropped",
              {{"cluster", lease.cluster_id()}});
    lease_.witnesses.Clear();
    lease_.rounds.clear();
  }
  const lease::Granted granted = {.heartbeat_seq = lease.heartbeat_seq(),
                                  .ttl = mega::FromProto(lease.ttl()),
                                  .outage_grace = mega::FromProto(lease.outage_grace()),
                                  .witnesses = lease.witnesses()};
  Obey(lease::Step(lease_, granted, now), now);
  if (!connected_.exchange(true)) {
    log::Info("in session with the coordinator",
              {{"coordinator", coordinator_.address}, {"session", lease.session()}});
    backoff_.Reset();
    outage_.Over();
    callbacks_.up();
  }
  std::optional<absl::Duration> heard;
  while (!receipts_.empty() && receipts_.front().first <= lease.heartbeat_seq()) {
    heard = receipts_.front().second;
    receipts_.pop_front();
  }
  if (heard) callbacks_.heard(*heard - kHeardAfter);
}

void Session::Hear(v1::CoordinatorMessage message, absl::Duration now) {
  heard_at_ = now;
  if (!refusal_.empty()) return;
  switch (message.kind_case()) {
    case v1::CoordinatorMessage::kLease:
      TakeLease(message.lease(), now);
      break;
    case v1::CoordinatorMessage::kCommand:
      callbacks_.command(std::move(*message.mutable_command()));
      break;
    case v1::CoordinatorMessage::kReject: {
      refusal_ = message.reject().reason();
      if (message.reject().fatal()) {
        callbacks_.fatal(FailedPrecondition("the coordinator at {} refuses this worker: {}",
                                            coordinator_.address, refusal_));
      }
      break;
    }
    case v1::CoordinatorMessage::kRelayedLease:
      callbacks_.relayed(message.relayed_lease());
      break;
    case v1::CoordinatorMessage::kRelayedRenewal:
    case v1::CoordinatorMessage::KIND_NOT_SET:
      break;
  }
}

void Session::Obey(const lease::Decision& decision, absl::Duration now) {
  wake_at_ = decision.wake_at;
  lease_end_ns_ = absl::ToInt64Nanoseconds(lease_.end);
  no_session_from_ns_ = absl::ToInt64Nanoseconds(lease::NoSessionFrom(lease_));
  if (decision.kill_ranks) callbacks_.kill_ranks();
  if (decision.push_lease_end) {
    callbacks_.push_lease_end(absl::ToInt64Nanoseconds(lease_.end));
  }
  if (decision.send && stream_) {
    if (stream_->Idle()) receipts_.emplace_back(*decision.send, now);
    if (receipts_.size() > kReceipts) receipts_.pop_front();
    stream_->SendHeartbeat(*decision.send);
  }
  if (decision.ack_renewal && stream_) {
    v1::WorkerMessage message;
    message.mutable_renewal_ack()->set_heartbeat_seq(*decision.ack_renewal);
    stream_->SendSoon(std::move(message));
  }
  if (decision.ack_witnesses && stream_) {
    v1::WorkerMessage message;
    message.mutable_witness_set_ack()->set_number(*decision.ack_witnesses);
    stream_->SendSoon(std::move(message));
  }
  if (decision.ask_witnesses) callbacks_.ask_witnesses(*decision.ask_witnesses, lease_.witnesses);
}

void Session::Run(std::stop_token stop) {
  // Heartbeats come before whatever else burns this machine. Refused without privilege; then the
  // kernel's fairness has to do.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), -10);
  dial_at_ = clock_.BootNow();
  while (!stop.stop_requested()) {
    std::deque<v1::CoordinatorMessage> messages;
    std::deque<lease::Input> inputs;
    std::optional<absl::Status> ended;
    bool redial = false;
    bool leaving = false;
    {
      MutexLock lock(mu_);
      const absl::Duration until = stream_ || leaving_ ? wake_at_ : std::min(wake_at_, dial_at_);
      const absl::Duration wait =
          std::clamp(until - clock_.BootNow(), absl::ZeroDuration(), kLongestWait);
      if (inbox_.empty() && inputs_.empty() && !ended_ && !redial_ && wait > absl::ZeroDuration()) {
        changed_.WaitFor(mu_, absl::ToChronoNanoseconds(wait));
      }
      messages.swap(inbox_);
      inputs.swap(inputs_);
      ended.swap(ended_);
      std::swap(redial, redial_);
      leaving = leaving_;
      if (ended) sending_ = nullptr;
    }
    const absl::Duration now = clock_.BootNow();
    for (v1::CoordinatorMessage& message : messages) Hear(std::move(message), now);
    for (const lease::Input& input : inputs) Obey(lease::Step(lease_, input, now), now);
    Obey(lease::Step(lease_, lease::Tick{}, now), now);
    if (ended) {
      stream_.reset();
      changed_.NotifyAll();  // for Goodbye
      HangUp(*ended, leaving, now);
    } else if (stream_ && (redial || now - heard_at_ > kSilence)) {
      if (cut_.empty()) {
        cut_ = redial ? "this worker dials anew"
                      : fmt::format("nothing was heard from it for {}",
                                    absl::FormatDuration(kSilence));
      }
      stream_->Cancel();
      heard_at_ = now;  // its end comes as `ended_`
    } else if (!stream_ && !leaving && now >= dial_at_) {
      Dial(now);
    }
  }
  // The call must end before its object does.
  if (!stream_) return;
  stream_->Cancel();
  MutexLock lock(mu_);
  while (!ended_) changed_.WaitFor(mu_, std::chrono::seconds(1));
  sending_ = nullptr;
  stream_.reset();
}

}  // namespace mega::daemon
