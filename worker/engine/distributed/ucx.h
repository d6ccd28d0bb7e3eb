// Ranks as processes, over UCX: shared memory on one host, TCP between hosts. One UCX worker per
// transport, used by the loop's thread alone.
//   transport = UcxTransport::Create(rank_ref)
//   publish transport->address(), collect those of the peers, then
//   transport->Connect(addresses)          // hands shake: job, attempt and epoch must agree
//   data = transport->MakeCommunicator({.name = "data", .ranks = {…}})
// A peer whose process ends fails the operations that wait for it within a second.
// Which of UCX's ways are used is decided here; UCX_* of the environment change nothing.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "mega/v1/worker.pb.h"
#include "worker/engine/distributed/progress_loop.h"
#include "worker/engine/distributed/transport.h"

namespace mega::distributed {

class UcxConnections;  // ucx/

class UcxTransport : public Transport {
 public:
  // For this rank of this attempt. UNAVAILABLE with UCX's reason; FAILED_PRECONDITION in a build
  // without UCX. `loopback`: all peers are on this host, so nothing listens to any other.
  static absl::StatusOr<std::unique_ptr<UcxTransport>> Create(const v1::RankRef& self,
                                                              bool loopback = false);
  ~UcxTransport() override;  // says farewell, at most a second; its communicators have gone

  int64_t rank() const override { return self_.rank(); }
  // Opaque bytes, valid in this attempt only.
  const std::string& address() const { return address_; }
  // Once. Every rank of every group this rank is in; its own entry is ignored. Returns when all
  // have answered. FAILED_PRECONDITION names a peer of another job, attempt or epoch,
  // DEADLINE_EXCEEDED those that did not answer.
  absl::Status Connect(const google::protobuf::RepeatedPtrField<v1::RankAddress>& peers,
                       absl::Duration timeout = absl::Seconds(60));

  absl::StatusOr<std::unique_ptr<Communicator>> MakeCommunicator(
      const CommunicatorOptions& options) override;

 private:
  explicit UcxTransport(const v1::RankRef& self);

  const v1::RankRef self_;
  std::string address_;
  std::set<uint32_t> group_ids_;
  ProgressLoop loop_;
  std::unique_ptr<UcxConnections> link_;  // lives and dies on the loop's thread
};

}  // namespace mega::distributed
