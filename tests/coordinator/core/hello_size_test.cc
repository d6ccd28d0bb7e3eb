// What workers say of themselves is kept: how much, and of how many.
#include "coordinator/core/nodes/hello_size.h"

#include "coordinator/core/step.h"
#include "gmock/gmock.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"

namespace mega::core {
namespace {

using testing::HasSubstr;

v1::Hello Of(const NodeId& name, int devices) {
  v1::Hello hello;
  hello.mutable_node()->set_name(name);
  for (int i = 0; i < devices; ++i) {
    v1::Device& device = *hello.mutable_node()->add_devices();
    device.set_index(i);
    device.set_kind("NVIDIA H200 141GB HBM3e SXM5");
    device.set_memory_bytes(int64_t{141} << 30);
    device.set_threads(16);
  }
  return hello;
}

v1::Reject SayHello(State& state, const v1::Hello& hello, int64_t session) {
  v1::CoreEvent event;
  event.mutable_worker()->set_node(hello.node().name());
  event.mutable_worker()->set_session(session);
  *event.mutable_worker()->mutable_message()->mutable_hello() = hello;
  const Decision decision = Step(state, event);
  return decision.effects.at(0).send().message().reject();
}

TEST(HelloSize, TheLargestNodeIsWelcome) {
  v1::Hello hello = Of("a", 4096);
  for (int i = 0; i < 64; ++i) {
    (*hello.mutable_node()->mutable_labels())[std::to_string(i)] = std::string(512, 'x');
  }
  EXPECT_EQ(WhatIsTooLarge(hello), "");
}

// Case: fields that the release does not know were kept with the node, 60 MiB of them, and no
// limit looked at them.
TEST(HelloSize, CountsWhatItDoesNotKnow) {
  v1::Hello hello = Of("a", 1);
  hello.mutable_node()
      ->GetReflection()
      ->MutableUnknownFields(hello.mutable_node())
      ->AddLengthDelimited(1000, std::string(300 << 10, 'x'));
  EXPECT_THAT(WhatIsTooLarge(hello), HasSubstr("(at most 262144)"));
}

TEST(HelloSize, TheClustersIdIsBounded) {
  v1::Hello hello = Of("a", 1);
  hello.set_cluster_id(std::string(600, 'c'));
  EXPECT_THAT(WhatIsTooLarge(hello), HasSubstr("600 bytes in the cluster's id (at most 512)"));
}

// Case: a worker that said hello under ever new names made nodes until memory and disk were full.
TEST(HelloSize, ANodeBeyondTheMostIsRefusedAndKnownOnesAreNot) {
  State state;
  v1::CoreEvent started;
  started.mutable_started();
  Step(state, started);
  for (size_t i = 0; i < kMostNodes - 1; ++i) {
    const NodeId name = "n" + std::to_string(i);
    state.durable.nodes[name].set_name(name);
    state.durable.nodes[name].set_state(v1::NODE_STATE_READY);
  }
  EXPECT_EQ(SayHello(state, Of("last", 1), 1).reason(), "");
  const v1::Reject refused = SayHello(state, Of("beyond", 1), 2);
  EXPECT_THAT(refused.reason(), HasSubstr("the cluster has 65536 nodes"));
  EXPECT_FALSE(refused.fatal());  // some may be lost, and forgotten
  EXPECT_EQ(SayHello(state, Of("n7", 1), 3).reason(), "");
  EXPECT_EQ(state.durable.nodes.size(), kMostNodes);

  for (const int i : {4, 5, 6, 8}) {
    v1::Node& node = state.durable.nodes["n" + std::to_string(i)];
    node.set_state(v1::NODE_STATE_LOST);
    node.mutable_last_heartbeat()->set_seconds(100 - i);
  }
  state.durable.nodes["n8"].set_cordoned(true);
  EXPECT_EQ(SayHello(state, Of("beyond", 1), 4).reason(), "");
  EXPECT_EQ(state.durable.nodes.size(), kMostNodes);
  EXPECT_FALSE(state.durable.nodes.contains("n6")) << "it was heard of least lately";
}

}  // namespace
}  // namespace mega::core
