#include "worker/engine/main/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/listening_addresses.h"
#include "tests/worker/engine/main/scripted_worker.h"

namespace mega::engine {
namespace {

// Case: two workers of one machine, both on loopback, whose ranks were open to the network.
TEST(Network, RanksOfWorkersOnLoopbackListenToNoOtherMachine) {
  testing::TempDir dir;
  v1::JobSpec spec = TinyJob(dir);
  spec.mutable_parallelism()->set_data_parallel_size(2);
  v1::StartTraining starts[2] = {StartOf(spec, dir), StartOf(spec, dir)};
  for (int64_t rank = 0; rank < 2; ++rank) {
    starts[rank].mutable_rank()->set_rank(rank);
    starts[rank].mutable_plan()->mutable_ranks(1)->set_node("nodes/b");
    starts[rank].set_listen_host("127.0.0.1");
  }
  const auto mesh =
      planner::RankMesh::Make(starts[0].plan().layout(), starts[0].plan().world_size());
  ASSERT_TRUE(mesh.ok());
  ScriptedWorker zero(dir, starts[0], {.connects = false});
  ScriptedWorker one(dir, starts[1], {.connects = false});
  const ScriptedWorker* const workers[2] = {&zero, &one};
  const SystemClock clock;
  absl::StatusOr<std::unique_ptr<Network>> networks[2];
  {
    std::vector<std::jthread> ranks;
    for (int64_t rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] {
        TrainerLink link({.socket = workers[rank]->socket(), .rank = starts[rank].rank()}, clock);
        ASSERT_TRUE(link.WaitForStart(absl::Seconds(30)).ok());
        networks[rank] = Network::Connect(starts[rank], *mesh, link);
      });
    }
    v1::TrainerMessage connect;
    for (int64_t rank = 0; rank < 2; ++rank) {
      const auto ready = workers[rank]->WaitFor([](const auto& m) { return m.has_ready(); });
      v1::RankAddress& address = *connect.mutable_connect()->add_addresses();
      address.set_rank(rank);
      address.set_address(ready.ready().address());
    }
    zero.Send(connect);
    one.Send(connect);
  }
  EXPECT_EQ(networks[0].status(), absl::OkStatus());
  EXPECT_EQ(networks[1].status(), absl::OkStatus());
  for (const std::string& address : testing::ListeningAddresses()) EXPECT_EQ(address, "0100007F");
}

}  // namespace
}  // namespace mega::engine
