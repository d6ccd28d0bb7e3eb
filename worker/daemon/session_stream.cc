#include "worker/daemon/session_stream.h"

#include <grpcpp/grpcpp.h>

#include "worker/daemon/channel.h"

namespace mega::daemon {

SessionStream::SessionStream(const Coordinator& coordinator, const v1::WorkerMessage& hello,
                             Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      channel_(MakeChannel(coordinator)),
      stub_(v1::WorkerService::NewStub(channel_)) {
  stub_->async()->Session(&context_, this);
  // Writes are started outside reactions, too: the hold keeps OnDone away until Close or a break.
  AddHold();
  StartRead(&incoming_);
  {
    MutexLock lock(mu_);
    waiting_.push_back(hello);
    WriteNext();
  }
  StartCall();
}

void SessionStream::WriteNext() {
  if (writing_ || broken_ || (waiting_.empty() && of_others_.empty())) return;
  const bool beat_waits = !waiting_.empty() && waiting_.front().has_heartbeat();
  const bool is_of_another =
      !of_others_.empty() && (waiting_.empty() || (others_turn_ && !beat_waits));
  std::deque<v1::WorkerMessage>& next = is_of_another ? of_others_ : waiting_;
  if (!beat_waits) others_turn_ = !is_of_another;
  outgoing_ = std::move(next.front());
  next.pop_front();
  writing_ = true;
  StartWrite(&outgoing_);
}

bool SessionStream::Send(v1::WorkerMessage message) {
  MutexLock lock(mu_);
  if (broken_ || closing_) return true;  // told again by the next session
  if (waiting_.size() >= kMaxWaiting) return false;
  waiting_.push_back(std::move(message));
  WriteNext();
  return true;
}

void SessionStream::SendHeartbeat(int64_t seq) {
  MutexLock lock(mu_);
  if (broken_ || closing_) return;
  if (waiting_.empty() || !waiting_.front().has_heartbeat()) waiting_.emplace_front();
  waiting_.front().mutable_heartbeat()->set_seq(seq);
  WriteNext();
}

void SessionStream::SendSoon(v1::WorkerMessage message) {
  MutexLock lock(mu_);
  if (broken_ || closing_ || waiting_.size() >= kMaxWaiting) return;
  const bool beat_waits = !waiting_.empty() && waiting_.front().has_heartbeat();
  waiting_.insert(waiting_.begin() + (beat_waits ? 1 : 0), std::move(message));
  WriteNext();
}

bool SessionStream::SendForAnother(v1::WorkerMessage message) {
  MutexLock lock(mu_);
  if (broken_ || closing_ || of_others_.size() >= kMaxOfOthers) return false;
  of_others_.push_back(std::move(message));
  WriteNext();
  return true;
}

bool SessionStream::Idle() const {
  MutexLock lock(mu_);
  return broken_ || (!writing_ && waiting_.empty());
}

void SessionStream::Close() {
  MutexLock lock(mu_);
  if (closing_ || broken_) return;
  closing_ = true;
  if (!writing_) {
    broken_ = true;
    StartWritesDone();
    RemoveHold();
  }
}

void SessionStream::OnReadDone(bool ok) {
  if (ok) {
    callbacks_.message(std::move(incoming_));
    incoming_.Clear();
    StartRead(&incoming_);
    return;
  }
  MutexLock lock(mu_);
  if (broken_) return;
  broken_ = true;
  RemoveHold();
}

void SessionStream::OnWriteDone(bool ok) {
  MutexLock lock(mu_);
  writing_ = false;
  if (broken_) return;
  if (!ok) {
    broken_ = true;
    RemoveHold();
    return;
  }
  WriteNext();
  if (!writing_ && closing_) {
    broken_ = true;
    StartWritesDone();
    RemoveHold();
  }
}

void SessionStream::OnDone(const grpc::Status& status) {
  // The stream may be destroyed before the call below returns: nothing of it is used any more.
  const auto ended = callbacks_.ended;
  ended(status.ok() ? Unavailable("the coordinator ended the session")
                    : absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                                   status.error_message()));
}

}  // namespace mega::daemon
