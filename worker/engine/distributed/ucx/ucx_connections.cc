#include "worker/engine/distributed/ucx/ucx_connections.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

namespace mega::distributed {
namespace {

constexpr auto kCloseFor = std::chrono::milliseconds(1000);

absl::Status FromUcs(ucs_status_t status, std::string_view what) {
  return Unavailable("{}: {}", what, ucs_status_string(status));
}

// Cross-memory attach copies straight from one process to the other, at twice the speed of shared
// memory. Yama lets only ancestors do it unless we agree; seccomp of a container may forbid it
// altogether, and then UCX would find out too late.
bool CrossMemoryAttachWorks() {
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  if (scope > 1) return false;
  if (scope == 1 && prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0) != 0) return false;
  char from = 1, to = 0;
  const iovec local{&to, 1}, remote{&from, 1};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 && to == 1;
}

void End(Transfer& transfer, ucs_status_t status, size_t bytes) {
  transfer.active = false;
  transfer.request = nullptr;
  transfer.bytes = static_cast<int64_t>(bytes);
  transfer.status =
      status == UCS_OK ? absl::OkStatus() : absl::UnavailableError(ucs_status_string(status));
}

// UCX may call back before the call that started the request has returned it; then that call frees.
void OnSent(void* request, ucs_status_t status, void* user_data) {
  auto& transfer = *static_cast<Transfer*>(user_data);
  const bool started = transfer.request != nullptr;
  End(transfer, status, 0);
  if (started) ucp_request_free(request);
}

void OnReceived(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                void* user_data) {
  auto& transfer = *static_cast<Transfer*>(user_data);
  const bool started = transfer.request != nullptr;
  End(transfer, status, status == UCS_OK ? info->length : 0);
  if (started) ucp_request_free(request);
}

void Started(void* request, Transfer& transfer) {
  if (!UCS_PTR_IS_PTR(request)) {
    End(transfer, UCS_PTR_RAW_STATUS(request), 0);
  } else if (transfer.active) {
    transfer.request = request;
  } else {
    ucp_request_free(request);
  }
}

void OnLost(void* lost, ucp_ep_h, ucs_status_t status) {
  absl::Status& reason = *static_cast<absl::Status*>(lost);
  if (reason.ok()) reason = absl::UnavailableError(ucs_status_string(status));
}

}  // namespace

absl::Status UcxConnections::Open() {
  ucp_config_t* config = nullptr;
  // Settings come from here. The prefix keeps UCX_TLS and its like, made for other programs of the
  // user, from changing how we train.
  ucs_status_t status = ucp_config_read("MEGA_ENGINE", nullptr, &config);
  if (status != UCS_OK) return FromUcs(status, "reading UCX's configuration");
  const std::pair<const char*, const char*> settings[] = {
      {"TLS", CrossMemoryAttachWorks() ? "posix,cma,tcp,self" : "posix,tcp,self"},
      {"KEEPALIVE_INTERVAL", "200ms"},
      {"NET_DEVICES", loopback_ ? "lo" : "all"},
  };
  for (const auto& [key, value] : settings) {
    status = ucp_config_modify(config, key, value);
    if (status != UCS_OK) break;
  }
  const std::string name = fmt::format("mega rank {}", rank_);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_TAG;
  params.name = name.c_str();
  if (status == UCS_OK) status = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  if (status != UCS_OK) return FromUcs(status, "starting UCX");

  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SINGLE;
  status = ucp_worker_create(context_, &worker, &worker_);
  return status == UCS_OK ? absl::OkStatus() : FromUcs(status, "starting UCX's worker");
}

// Farewells of peers that nobody waits for any more; UCX would warn about each.
void UcxConnections::DropUnclaimed() {
  ucp_tag_recv_info_t info{};
  while (ucp_tag_message_h message = ucp_tag_probe_nb(worker_, 0, 0, /*remove=*/1, &info)) {
    ucp_request_param_t param{};
    void* request = ucp_tag_msg_recv_nbx(worker_, nullptr, 0, message, &param);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }
}

UcxConnections::~UcxConnections() {
  for (auto& [rank, peer] : peers_) Close(peer, /*force=*/!peer.lost.ok());
  const auto until = std::chrono::steady_clock::now() + kCloseFor;
  while (!closing_.empty() && std::chrono::steady_clock::now() < until) {
    ucp_worker_progress(worker_);
    std::erase_if(closing_, [](void* request) {
      if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
      ucp_request_free(request);
      return true;
    });
  }
  for (void* request : closing_) ucp_request_free(request);
  if (worker_ != nullptr) {
    DropUnclaimed();
    ucp_worker_destroy(worker_);
  }
  if (context_ != nullptr) ucp_cleanup(context_);
}

void UcxConnections::Close(Peer& peer, bool force) {
  if (peer.endpoint == nullptr) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  void* request = ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &param);
  if (UCS_PTR_IS_PTR(request)) closing_.push_back(request);
}

absl::StatusOr<std::string> UcxConnections::Address() const {
  ucp_address_t* address = nullptr;
  size_t length = 0;
  const ucs_status_t status = ucp_worker_get_address(worker_, &address, &length);
  if (status != UCS_OK) return FromUcs(status, "asking UCX for this rank's address");
  std::string bytes(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_, address);
  return bytes;
}

absl::Status UcxConnections::Dial(int64_t rank, const std::string& address) {
  Peer& peer = peers_[rank];
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {.cb = OnLost, .arg = &peer.lost};
  const ucs_status_t status = ucp_ep_create(worker_, &params, &peer.endpoint);
  if (status == UCS_OK) return absl::OkStatus();
  peer.endpoint = nullptr;
  return FromUcs(status, fmt::format("connecting to rank {}", rank));
}

void UcxConnections::Send(int64_t to, uint64_t tag, std::span<const std::byte> bytes,
                          Transfer& transfer) {
  const auto peer = peers_.find(to);
  if (peer == peers_.end() || peer->second.endpoint == nullptr || !peer->second.lost.ok())
    return End(transfer, UCS_ERR_NOT_CONNECTED, 0);
  transfer = {.active = true};
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = OnSent;
  param.user_data = &transfer;
  Started(ucp_tag_send_nbx(peer->second.endpoint, bytes.data(), bytes.size(), tag, &param),
          transfer);
}

void UcxConnections::Recv(int64_t from, uint64_t tag, std::span<std::byte> bytes,
                          Transfer& transfer) {
  transfer = {.active = true};
  ucp_request_param_t param{};
  // Always called back: a receive that ends at once would not tell how much came.
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv = OnReceived;
  param.user_data = &transfer;
  Started(ucp_tag_recv_nbx(worker_, bytes.data(), bytes.size(), tag, ~uint64_t{0}, &param),
          transfer);
}

void UcxConnections::Cancel(Transfer& transfer) {
  if (transfer.request != nullptr) ucp_request_cancel(worker_, transfer.request);
}

void UcxConnections::Disconnect(std::span<const int64_t> ranks) {
  for (const int64_t rank : ranks) {
    const auto peer = peers_.find(rank);
    if (peer == peers_.end()) continue;
    if (peer->second.lost.ok()) peer->second.lost = absl::CancelledError("connection dropped");
    Close(peer->second, /*force=*/true);
  }
}

absl::Status UcxConnections::PeerStatus(int64_t rank) const {
  const auto peer = peers_.find(rank);
  return peer == peers_.end() ? absl::OkStatus() : peer->second.lost;
}

}  // namespace mega::distributed
