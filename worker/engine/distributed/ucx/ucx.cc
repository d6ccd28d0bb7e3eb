#include "worker/engine/distributed/ucx.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/check.h"
#include "base/hash.h"
#include "worker/engine/distributed/link_communicator.h"
#include "worker/engine/distributed/ucx/ucx_connections.h"

namespace mega::distributed {
namespace {

// In front of UCX's own address, and what ranks tell each other when they connect.
struct Identity {
  std::array<char, 8> magic{'m', 'e', 'g', 'a', 'u', 'c', 'x', '1'};
  uint64_t job = 0;  // hash of the uid
  int64_t attempt = 0;
  int64_t epoch = 0;
  int64_t rank = 0;
};
static_assert(sizeof(Identity) == 40);

Identity IdentityOf(const v1::RankRef& attempt, int64_t rank) {
  return {.job = Fnv1a(attempt.job_uid()),
          .attempt = attempt.attempt(),
          .epoch = attempt.epoch(),
          .rank = rank};
}

// Goes into the header of every operation.
uint64_t AttemptHash(const v1::RankRef& self) {
  return Fnv1a(fmt::format("{}/{}/{}", self.job_uid(), self.attempt(), self.epoch()));
}

absl::Status CheckIdentity(const v1::RankRef& mine, int64_t rank, const Identity& theirs) {
  const Identity expected = IdentityOf(mine, rank);
  if (theirs.magic != expected.magic)
    return FailedPrecondition("rank {} speaks another version of the protocol than rank {}", rank,
                              mine.rank());
  if (theirs.job != expected.job)
    return FailedPrecondition("the peer at the address of rank {} belongs to another job than {}",
                              rank, mine.job_uid());
  if (theirs.attempt != expected.attempt || theirs.epoch != expected.epoch)
    return FailedPrecondition(
        "the peer at the address of rank {} is of attempt {}, epoch {}; this is attempt {}, epoch "
        "{}: it is stale and refused",
        rank, theirs.attempt, theirs.epoch, mine.attempt(), mine.epoch());
  if (theirs.rank != rank)
    return FailedPrecondition("the address of rank {} belongs to rank {}", rank, theirs.rank);
  return absl::OkStatus();
}

}  // namespace

UcxTransport::UcxTransport(const v1::RankRef& self) : self_(self), loop_("mega-ucx") {}

absl::StatusOr<std::unique_ptr<UcxTransport>> UcxTransport::Create(const v1::RankRef& self,
                                                                   bool loopback) {
  std::unique_ptr<UcxTransport> transport(new UcxTransport(self));
  absl::StatusOr<std::string> address;
  transport->loop_.Run([&] {
    transport->link_ = std::make_unique<UcxConnections>(self.rank(), loopback);
    const absl::Status opened = transport->link_->Open();
    address = opened.ok() ? transport->link_->Address() : opened;
    if (address.ok()) transport->loop_.Add(transport->link_.get());
  });
  MEGA_RETURN_IF_ERROR(address.status());
  const Identity identity = IdentityOf(self, self.rank());
  transport->address_.assign(reinterpret_cast<const char*>(&identity), sizeof(identity));
  transport->address_ += *address;
  return transport;
}

UcxTransport::~UcxTransport() {
  loop_.Run([this] {
    loop_.Remove(link_.get());
    link_.reset();
  });
}

absl::Status UcxTransport::Connect(const google::protobuf::RepeatedPtrField<v1::RankAddress>& peers,
                                   absl::Duration timeout) {
  struct Hello {
    int64_t rank;
    Identity theirs;
    Transfer send, receive;
  };
  std::deque<Hello> hellos;  // stable addresses
  for (const v1::RankAddress& peer : peers) {
    if (peer.rank() == self_.rank()) continue;
    Hello& hello = hellos.emplace_back();
    hello.rank = peer.rank();
    if (peer.address().size() <= sizeof(Identity))
      return InvalidArgument("the address of rank {} has {} bytes; it was not made by a transport",
                             peer.rank(), peer.address().size());
    std::memcpy(&hello.theirs, peer.address().data(), sizeof(Identity));
    MEGA_RETURN_IF_ERROR(CheckIdentity(self_, peer.rank(), hello.theirs));
  }

  // One by one on the loop's thread; between two rounds it moves messages.
  const Identity mine = IdentityOf(self_, self_.rank());
  absl::Status status;
  const auto tag = [](int64_t sender) {
    return MakeTag(kHelloGroup, sender, Channel::kHeader, 0, 0);
  };
  loop_.Run([&] {
    auto address = peers.begin();
    for (Hello& hello : hellos) {
      while (address->rank() == self_.rank()) ++address;
      status = link_->Dial(hello.rank, address++->address().substr(sizeof(Identity)));
      if (!status.ok()) return;
      link_->Recv(hello.rank, tag(hello.rank), std::as_writable_bytes(std::span(&hello.theirs, 1)),
                  hello.receive);
      link_->Send(hello.rank, tag(self_.rank()), std::as_bytes(std::span(&mine, 1)), hello.send);
    }
  });

  const absl::Time deadline = absl::Now() + timeout;
  std::vector<int64_t> missing;
  for (bool done = false; !done && status.ok();) {
    loop_.Run([&] {
      missing.clear();
      for (const Hello& hello : hellos) {
        const absl::Status lost = link_->PeerStatus(hello.rank);
        if (!lost.ok())
          status = Unavailable("rank {} was lost while connecting: {}", hello.rank,
                               std::string(lost.message()));
        if (hello.send.active || hello.receive.active) missing.push_back(hello.rank);
      }
    });
    done = missing.empty();
    if (!done && absl::Now() > deadline)
      status = absl::DeadlineExceededError(
          fmt::format("{} did not answer within {}; is it running, and can hosts reach each other?",
                      NameRanks(missing), absl::FormatDuration(timeout)));
    if (!done && status.ok()) absl::SleepFor(absl::Microseconds(200));
  }
  for (const Hello& hello : hellos) {
    if (!status.ok()) break;
    if (!hello.receive.status.ok())
      status = Annotate(hello.receive.status, fmt::format("the greeting of rank {}", hello.rank));
    else
      status = CheckIdentity(self_, hello.rank, hello.theirs);
  }
  if (status.ok()) return status;
  // The greetings live here: no connection may still write to them.
  loop_.Run([&] {
    std::vector<int64_t> ranks;
    for (Hello& hello : hellos) {
      if (hello.receive.active) link_->Cancel(hello.receive);
      ranks.push_back(hello.rank);
    }
    link_->Disconnect(ranks);
    const absl::Time until = absl::Now() + absl::Seconds(1);
    const auto active = [](const Hello& h) { return h.send.active || h.receive.active; };
    while (std::ranges::any_of(hellos, active) && absl::Now() < until) link_->Progress();
  });
  return status;
}

absl::StatusOr<std::unique_ptr<Communicator>> UcxTransport::MakeCommunicator(
    const CommunicatorOptions& options) {
  MEGA_ASSIGN_OR_RETURN(Group group, MakeGroup(options, self_.rank(), AttemptHash(self_)));
  if (!group_ids_.insert(group.id).second)
    return InvalidArgument(
        "group name {} clashes with an earlier one of this transport; choose another",
        options.name);
  return std::make_unique<LinkCommunicator>(std::move(group), options.timeout, *link_, loop_);
}

}  // namespace mega::distributed
