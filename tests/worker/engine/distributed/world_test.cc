#include "tests/worker/engine/distributed/ranks.h"
#include "worker/engine/distributed/ucx.h"

namespace mega::distributed {
namespace {

class InprocWorld : public World {
 public:
  explicit InprocWorld(int64_t n) : hub_(n) {}
  Transport& transport(int64_t rank) override { return hub_.transport(rank); }

 private:
  InprocHub hub_;
};

// The transports of processes, all in this one.
class UcxWorld : public World {
 public:
  explicit UcxWorld(int64_t n) {
    google::protobuf::RepeatedPtrField<v1::RankAddress> addresses;
    for (int64_t rank = 0; rank < n; ++rank) {
      v1::RankRef self;
      self.set_rank(rank);
      auto transport = UcxTransport::Create(self);
      MEGA_CHECK_OK(transport);
      v1::RankAddress& address = *addresses.Add();
      address.set_rank(rank);
      address.set_address((*transport)->address());
      transports_.push_back(*std::move(transport));
    }
    InThreads(n, [&](int64_t rank) { MEGA_CHECK_OK(transports_[rank]->Connect(addresses)); });
  }
  Transport& transport(int64_t rank) override { return *transports_[rank]; }

 private:
  std::vector<std::unique_ptr<UcxTransport>> transports_;
};

}  // namespace

std::unique_ptr<World> World::Make(const std::string& backend, int64_t n) {
  if (backend == "ucx") return std::make_unique<UcxWorld>(n);
  MEGA_CHECK_EQ(backend, "inproc");
  return std::make_unique<InprocWorld>(n);
}

}  // namespace mega::distributed
