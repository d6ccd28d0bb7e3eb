#include "worker/daemon/trainer_service.h"

#include <errno.h>
#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>

#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/utf8.h"
#include "worker/daemon/channel.h"

namespace mega::daemon {
namespace {

constexpr size_t kMaxWaiting = 10'000;  // messages to an engine that does not read

std::string RuntimeFolder() {
  const char* given = getenv("XDG_RUNTIME_DIR");
  // sun_path holds 108 bytes, so a long folder will not do; a handover names the socket.
  if (given != nullptr && given[0] == '/' && std::string_view(given).size() < 60 && IsUtf8(given) &&
      access(given, W_OK | X_OK) == 0) {
    return given;
  }
  return "/tmp";
}

}  // namespace

// One engine's stream. gRPC owns it until OnDone; the service's map may hold it a little longer.
class Attachment : public grpc::ServerBidiReactor<v1::EngineMessage, v1::TrainerMessage>,
                   public std::enable_shared_from_this<Attachment> {
 public:
  explicit Attachment(TrainerService& service) : service_(service) {}

  void Start() {
    MutexLock lock(mu_);
    self_ = shared_from_this();
    StartRead(&incoming_);
  }

  void Send(const v1::TrainerMessage& message) {
    bool overflow = false;
    {
      MutexLock lock(mu_);
      if (finished_) return;
      overflow = outgoing_.size() >= kMaxWaiting;
      if (!overflow) {
        outgoing_.push_back(message);
        if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
      }
    }
    if (overflow) End(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "engine does not read"));
  }

  void End(const grpc::Status& status) {
    {
      MutexLock lock(mu_);
      if (finished_) return;
      finished_ = true;
    }
    Finish(status);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End(grpc::Status::OK);
      return;
    }
    if (!key_) {
      if (!TakeOrders()) return;
    } else {
      service_.callbacks_.message(*key_, std::move(incoming_));
      incoming_.Clear();
    }
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mu_);
    if (!ok) return;  // the read ends, too
    outgoing_.pop_front();
    if (!outgoing_.empty() && !finished_) StartWrite(&outgoing_.front());
  }

  void OnCancel() override { End(grpc::Status::CANCELLED); }

  void OnDone() override {
    if (key_) service_.Detach(*key_, this);
    std::shared_ptr<Attachment> self;
    {
      MutexLock lock(mu_);
      self.swap(self_);
    }
  }

 private:
  bool TakeOrders() {
    if (!incoming_.has_attached()) {
      End(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the first message must be `attached`"));
      return false;
    }
    const RankKey key = RankKey::From(incoming_.attached().rank());
    absl::StatusOr<v1::StartTraining> orders =
        service_.Admit(incoming_.attached(), shared_from_this());
    if (!orders.ok()) {
      log::Warn("an engine was refused",
                {{"rank", key.Text()}, {"why", std::string(orders.status().message())}});
      End(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                       std::string(orders.status().message())));
      return false;
    }
    key_ = key;
    v1::TrainerMessage message;
    *message.mutable_start() = *std::move(orders);
    Send(message);
    service_.callbacks_.attached(key);
    incoming_.Clear();
    return true;
  }

  TrainerService& service_;
  v1::EngineMessage incoming_;  // of the one read under way
  std::optional<RankKey> key_;  // once admitted; written before any later read
  Mutex mu_;
  std::deque<v1::TrainerMessage> outgoing_ MEGA_GUARDED_BY(mu_);  // the first is being written
  bool finished_ MEGA_GUARDED_BY(mu_) = false;
  std::shared_ptr<Attachment> self_ MEGA_GUARDED_BY(mu_);
};

absl::StatusOr<std::unique_ptr<TrainerService>> TrainerService::Start(Callbacks callbacks) {
  std::unique_ptr<TrainerService> service(new TrainerService(std::move(callbacks)));
  std::string folder = RuntimeFolder() + "/mega-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {  // 0700
    return ErrnoStatus(errno, fmt::format("cannot create the socket folder {}", folder));
  }
  service->folder_ = folder;
  service->socket_ = folder + "/s";
  static_assert(sizeof(sockaddr_un::sun_path) > 100);

  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);  // of our own children; what goes on is bounded there
  builder.SetMaxSendMessageSize(-1);
  int bound = 0;
  builder.AddListeningPort("unix:" + service->socket_, grpc::InsecureServerCredentials(), &bound);
  builder.RegisterService(service.get());
  service->server_ = builder.BuildAndStart();
  if (!service->server_) return Unavailable("cannot serve engines on {}", service->socket_);
  return service;
}

TrainerService::~TrainerService() {
  if (server_) {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
  }
  RemoveSocketFolder(folder_);
}

void TrainerService::Expect(const RankKey& key, Expected expected) {
  MutexLock lock(mu_);
  expected_[key] = std::move(expected);
}

void TrainerService::Forget(const RankKey& key) {
  std::shared_ptr<Attachment> attachment;
  {
    MutexLock lock(mu_);
    expected_.erase(key);
    const auto it = attachments_.find(key);
    if (it != attachments_.end()) attachment = it->second;
  }
  if (attachment) attachment->End(grpc::Status::OK);
}

absl::StatusOr<v1::StartTraining> TrainerService::Admit(const v1::Attached& attached,
                                                        std::shared_ptr<Attachment> attachment) {
  const RankKey key = RankKey::From(attached.rank());
  absl::Status mixed;
  {
    MutexLock lock(mu_);
    const auto it = expected_.find(key);
    if (it == expected_.end()) return NotFound("no rank {} runs on this node", key.Text());
    const Expected& expected = it->second;
    if (expected.pid != attached.pid()) {
      return absl::PermissionDeniedError(
          fmt::format("rank {} is process {}, not {}", key.Text(), expected.pid, attached.pid()));
    }
    const auto& wanted = expected.start.plan().numeric_libraries();
    const auto& has = attached.numeric_libraries();
    if (wanted.empty() ||
        std::is_permutation(wanted.begin(), wanted.end(), has.begin(), has.end())) {
      attachments_[key] = std::move(attachment);
      v1::StartTraining start = expected.start;
      start.mutable_lease_end()->set_boottime_ns(lease_end_ns_);
      return start;
    }
    mixed = FailedPrecondition(
        "the engine of rank {} has numeric libraries [{}] but the plan is for [{}]: mixed versions "
        "would not give the same bits; install the same release on every node",
        key.Text(), absl::StrJoin(has, ", "), absl::StrJoin(wanted, ", "));
  }
  callbacks_.refused(key, mixed);
  return mixed;
}

void TrainerService::Detach(const RankKey& key, const Attachment* attachment) {
  {
    MutexLock lock(mu_);
    const auto it = attachments_.find(key);
    if (it == attachments_.end() || it->second.get() != attachment) return;
    attachments_.erase(it);
  }
  callbacks_.detached(key);
}

std::vector<std::shared_ptr<Attachment>> TrainerService::AttachedWhere(
    const std::function<bool(const RankKey&)>& wanted) {
  std::vector<std::shared_ptr<Attachment>> out;
  MutexLock lock(mu_);
  for (const auto& [key, attachment] : attachments_) {
    if (wanted(key)) out.push_back(attachment);
  }
  return out;
}

void TrainerService::PushLeaseEnd(int64_t boottime_ns) {
  {
    MutexLock lock(mu_);
    lease_end_ns_ = boottime_ns;
  }
  v1::TrainerMessage message;
  message.mutable_lease_end()->set_boottime_ns(boottime_ns);
  for (const auto& attachment : AttachedWhere([](const RankKey&) { return true; })) {
    attachment->Send(message);
  }
}

void TrainerService::SendToAttempt(const std::string& job_uid, int64_t epoch,
                                   const v1::TrainerMessage& message) {
  for (const auto& attachment : AttachedWhere(
           [&](const RankKey& key) { return key.job_uid == job_uid && key.epoch == epoch; })) {
    attachment->Send(message);
  }
}

void TrainerService::Send(const RankKey& key, const v1::TrainerMessage& message) {
  for (const auto& attachment : AttachedWhere([&](const RankKey& k) { return k == key; })) {
    attachment->Send(message);
  }
}

grpc::ServerBidiReactor<v1::EngineMessage, v1::TrainerMessage>* TrainerService::Attach(
    grpc::CallbackServerContext* context) {
  auto attachment = std::make_shared<Attachment>(*this);
  attachment->Start();
  return attachment.get();
}

void RemoveSocketFolder(const std::string& folder) {
  if (!std::filesystem::path(folder).filename().string().starts_with("mega-")) return;
  unlink((folder + "/s").c_str());
  rmdir(folder.c_str());
}

}  // namespace mega::daemon
