// A UCX worker and its endpoints as a Link. The loop's thread only, from Open to the destructor.
#pragma once

#include <ucp/api/ucp.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/engine/distributed/link.h"
#include "worker/engine/distributed/progress_loop.h"

namespace mega::distributed {

class UcxConnections : public Link, public ProgressLoop::Task {
 public:
  // `loopback`: all peers are on this host, so nothing listens to any other.
  UcxConnections(int64_t rank, bool loopback) : rank_(rank), loopback_(loopback) {}
  ~UcxConnections() override;
  absl::Status Open();
  // Bytes that Dial of another process takes.
  absl::StatusOr<std::string> Address() const;
  absl::Status Dial(int64_t rank, const std::string& address);

  void Send(int64_t to, uint64_t tag, std::span<const std::byte> bytes,
            Transfer& transfer) override;
  void Recv(int64_t from, uint64_t tag, std::span<std::byte> bytes, Transfer& transfer) override;
  void Cancel(Transfer& transfer) override;
  void Disconnect(std::span<const int64_t> ranks) override;
  absl::Status PeerStatus(int64_t rank) const override;

  bool Progress() override { return ucp_worker_progress(worker_) != 0; }
  bool busy() const override { return false; }  // it only carries what others wait for

 private:
  struct Peer {
    ucp_ep_h endpoint = nullptr;
    absl::Status lost;
  };
  void Close(Peer& peer, bool force);
  void DropUnclaimed();

  const int64_t rank_;
  const bool loopback_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::map<int64_t, Peer> peers_;  // stable addresses: endpoints point to them
  std::vector<void*> closing_;     // requests of endpoints on their way out
};

}  // namespace mega::distributed
