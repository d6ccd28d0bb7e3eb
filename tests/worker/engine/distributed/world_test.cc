#include "tests/worker/engine/distributed/ranks.h"

namespace mega::distributed {
namespace {

class InprocWorld : public World {
 public:
  explicit InprocWorld(int64_t n) : hub_(n) {}
  Transport& transport(int64_t rank) override { return hub_.transport(rank); }

 private:
  InprocHub hub_;
};

}  // namespace

std::unique_ptr<World> World::Make(const std::string& backend, int64_t n) {
  MEGA_CHECK_EQ(backend, "inproc");
  return std::make_unique<InprocWorld>(n);
}

}  // namespace mega::distributed
