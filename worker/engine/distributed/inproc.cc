// Messages meet by (sender, receiver, tag). Short ones are copied at once, as any network would
// buffer them; long ones wait, in the sender's memory, for their receive.
#include "worker/engine/distributed/inproc.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "base/check.h"
#include "worker/engine/distributed/link_communicator.h"

namespace mega::distributed {
namespace {

constexpr size_t kBufferedBytes = 8192;

void End(Transfer& transfer, absl::Status status, int64_t bytes) {
  transfer.active = false;
  transfer.status = std::move(status);
  transfer.bytes = bytes;
}

}  // namespace

// The mailboxes of all ranks. The loop's thread only.
class InprocHub::Exchange {
 public:
  using Key = std::tuple<int64_t, int64_t, uint64_t>;  // from, to, tag

  void Send(const Key& key, std::span<const std::byte> bytes, Transfer& transfer) {
    transfer = {.active = true};
    Box& box = boxes_[key];
    if (!box.receives.empty()) {
      const Receive receive = box.receives.front();
      box.receives.pop_front();
      Deliver(bytes, receive);
      End(transfer, absl::OkStatus(), static_cast<int64_t>(bytes.size()));
    } else if (bytes.size() <= kBufferedBytes) {
      box.messages.push_back({std::vector<std::byte>(bytes.begin(), bytes.end()), {}, nullptr});
      End(transfer, absl::OkStatus(), static_cast<int64_t>(bytes.size()));
    } else {
      box.messages.push_back({{}, bytes, &transfer});
    }
    if (box.empty()) boxes_.erase(key);
  }

  void Recv(const Key& key, std::span<std::byte> bytes, Transfer& transfer) {
    transfer = {.active = true};
    Box& box = boxes_[key];
    if (box.messages.empty()) {
      box.receives.push_back({bytes, &transfer});
      return;
    }
    Message message = std::move(box.messages.front());
    box.messages.pop_front();
    Deliver(message.sender ? message.held : std::span<const std::byte>(message.buffered),
            {bytes, &transfer});
    if (message.sender)
      End(*message.sender, absl::OkStatus(), static_cast<int64_t>(message.held.size()));
    if (box.empty()) boxes_.erase(key);
  }

  void Cancel(const Transfer& transfer) {
    for (auto& [key, box] : boxes_) {
      std::erase_if(box.messages, [&](const Message& m) { return m.sender == &transfer; });
      std::erase_if(box.receives, [&](const Receive& r) { return r.transfer == &transfer; });
    }
  }

  void Kill(int64_t rank) {
    dead_.insert(rank);
    for (auto& [key, box] : boxes_) {
      if (std::get<0>(key) != rank && std::get<1>(key) != rank) continue;
      const absl::Status lost = absl::UnavailableError("its process ended");
      for (Message& message : box.messages)
        if (message.sender) End(*message.sender, lost, 0);
      for (Receive& receive : box.receives) End(*receive.transfer, lost, 0);
      std::erase_if(box.messages, [](const Message& m) { return m.sender != nullptr; });
      box.receives.clear();
    }
  }
  bool Holds(const Key& key) const {
    const auto box = boxes_.find(key);
    return box != boxes_.end() && !box->second.messages.empty();
  }
  bool dead(int64_t rank) const { return dead_.contains(rank); }

 private:
  struct Message {
    std::vector<std::byte> buffered;
    std::span<const std::byte> held;  // with `sender`: still in its memory
    Transfer* sender;
  };
  struct Receive {
    std::span<std::byte> bytes;
    Transfer* transfer;
  };
  struct Box {
    std::deque<Message> messages;
    std::deque<Receive> receives;
    bool empty() const { return messages.empty() && receives.empty(); }
  };

  static void Deliver(std::span<const std::byte> from, const Receive& to) {
    if (from.size() > to.bytes.size()) {
      End(*to.transfer,
          DataLoss("a message of {} bytes for a receive of {}", from.size(), to.bytes.size()), 0);
      return;
    }
    if (!from.empty()) std::memcpy(to.bytes.data(), from.data(), from.size());
    End(*to.transfer, absl::OkStatus(), static_cast<int64_t>(from.size()));
  }

  std::map<Key, Box> boxes_;
  std::set<int64_t> dead_;
};

class InprocHub::RankLink : public Link, public Transport {
 public:
  RankLink(InprocHub& hub, int64_t rank) : hub_(hub), rank_(rank) {}

  void Send(int64_t to, uint64_t tag, std::span<const std::byte> bytes,
            Transfer& transfer) override {
    if (Refuse(to, transfer)) return;
    hub_.exchange_->Send({rank_, to, tag}, bytes, transfer);
  }
  void Recv(int64_t from, uint64_t tag, std::span<std::byte> bytes, Transfer& transfer) override {
    // What a rank had sent before it died still arrives.
    if (!hub_.exchange_->Holds({from, rank_, tag}) && Refuse(from, transfer)) return;
    hub_.exchange_->Recv({from, rank_, tag}, bytes, transfer);
  }
  bool Progress() override { return false; }  // messages move when both sides have come
  void Cancel(Transfer& transfer) override {
    hub_.exchange_->Cancel(transfer);
    End(transfer, absl::CancelledError(""), 0);
  }
  void Disconnect(std::span<const int64_t>) override {}  // Cancel always works
  absl::Status PeerStatus(int64_t rank) const override {
    return hub_.exchange_->dead(rank) ? absl::UnavailableError("its process ended")
                                      : absl::OkStatus();
  }

  int64_t rank() const override { return rank_; }
  absl::StatusOr<std::unique_ptr<Communicator>> MakeCommunicator(
      const CommunicatorOptions& options) override {
    MEGA_ASSIGN_OR_RETURN(Group group, MakeGroup(options, rank_, /*identity=*/1));
    return std::make_unique<LinkCommunicator>(std::move(group), options.timeout, *this, hub_.loop_);
  }

 private:
  bool Refuse(int64_t peer, Transfer& transfer) const {
    if (!hub_.exchange_->dead(peer) && !hub_.exchange_->dead(rank_)) return false;
    End(transfer, absl::UnavailableError("its process ended"), 0);
    return true;
  }
  InprocHub& hub_;
  const int64_t rank_;
};

InprocHub::InprocHub(int64_t world_size)
    : exchange_(std::make_unique<Exchange>()), loop_("mega-inproc") {
  for (int64_t rank = 0; rank < world_size; ++rank)
    links_.push_back(std::make_unique<RankLink>(*this, rank));
}

InprocHub::~InprocHub() = default;

std::unique_ptr<Communicator> InprocHub::Make(int64_t rank, const CommunicatorOptions& options) {
  absl::StatusOr<std::unique_ptr<Communicator>> made = transport(rank).MakeCommunicator(options);
  MEGA_CHECK_OK(made);
  return *std::move(made);
}

Transport& InprocHub::transport(int64_t rank) {
  MEGA_CHECK(rank >= 0 && rank < static_cast<int64_t>(links_.size()));
  return *links_[rank];
}

void InprocHub::Kill(int64_t rank) {
  loop_.Run([this, rank] { exchange_->Kill(rank); });
}

}  // namespace mega::distributed
