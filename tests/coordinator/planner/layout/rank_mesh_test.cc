#include "coordinator/planner/layout/rank_mesh.h"

#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_dir.h"

namespace mega::planner {
namespace {

using ::testing::HasSubstr;

v1::Layout MakeLayout(int64_t tp, int64_t cp, int64_t dp, int64_t pp, int64_t ep = 1,
                      int64_t etp = 0, const std::string& order = "tp-cp-ep-dp-pp") {
  v1::Layout layout;
  layout.set_tensor_parallel_size(tp);
  layout.set_context_parallel_size(cp);
  layout.set_data_parallel_size(dp);
  layout.set_pipeline_parallel_size(pp);
  layout.set_expert_parallel_size(ep);
  layout.set_expert_tensor_parallel_size(etp);
  layout.set_rank_order(order);
  return layout;
}

// All groups of an axis list, in the order of their first rank, as the reference prints them.
template <typename GroupOf>
std::set<std::vector<int64_t>> Groups(int64_t world, GroupOf group_of) {
  std::set<std::vector<int64_t>> groups;
  for (int64_t rank = 0; rank < world; ++rank) groups.insert(group_of(rank));
  return groups;
}

TEST(RankMesh, GroupsEqualMegatronCores) {
  const auto json = nlohmann::json::parse(
      testing::ReadFile(std::string(MEGA_TEST_DATA) + "/parallel/rank_groups.json"));
  const std::map<std::string, Axis> dense_axes = {
      {"tp", Axis::kTensor}, {"cp", Axis::kContext}, {"dp", Axis::kData}, {"pp", Axis::kPipeline}};
  const std::map<std::string, Axis> expert_axes = {{"tp", Axis::kExpertTensor},
                                                   {"ep", Axis::kExpert},
                                                   {"dp", Axis::kData},
                                                   {"pp", Axis::kPipeline}};
  const auto axes_of = [](const std::string& names, const std::map<std::string, Axis>& table) {
    std::vector<Axis> axes;
    for (size_t at = 0; at < names.size(); at += 3) axes.push_back(table.at(names.substr(at, 2)));
    return axes;
  };
  int compared = 0;
  for (const auto& config : json["configs"]) {
    const int64_t world = config["world"];
    const auto make = [&](int64_t ep, int64_t etp) {
      return RankMesh::Make(MakeLayout(config["tp"], config["cp"], config["dp"], config["pp"], ep,
                                       etp, config["order"]),
                            world);
    };
    for (const auto& expert : config["expert"]) {
      const auto mesh = make(expert["ep"], expert["expert_tp"]);
      if (!mesh.ok()) {
        // Megatron builds these too, but their pipelines differ between the grids; it refuses them
        // later (decoder and expert pipeline groups must coincide).
        EXPECT_EQ(config["order"], "tp-cp-ep-pp-dp");
        continue;
      }
      EXPECT_EQ(mesh->expert_data_size(), expert["expert_dp"].get<int64_t>());
      for (const auto& [name, groups] : expert["groups"].items()) {
        const auto axes = axes_of(name, expert_axes);
        EXPECT_EQ(Groups(world, [&](int64_t rank) { return mesh->ExpertGroupOf(rank, axes); }),
                  (groups.get<std::set<std::vector<int64_t>>>()))
            << config.dump().substr(0, 80) << " expert " << name;
        ++compared;
      }
      for (const auto& [name, groups] : config["dense"].items()) {
        const auto axes = axes_of(name, dense_axes);
        EXPECT_EQ(Groups(world, [&](int64_t rank) { return mesh->GroupOf(rank, axes); }),
                  (groups.get<std::set<std::vector<int64_t>>>()))
            << config.dump().substr(0, 80) << " " << name;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 60);
}

TEST(RankMesh, RankAndCoordsRoundTripForEveryFactorisation) {
  int meshes = 0;
  for (int64_t world = 1; world <= 64; ++world) {
    for (int64_t tp = 1; tp <= world; ++tp) {
      if (world % tp != 0) continue;
      for (int64_t cp = 1; cp <= world / tp; ++cp) {
        if (world / tp % cp != 0) continue;
        for (int64_t pp = 1; pp <= world / tp / cp; ++pp) {
          if (world / tp / cp % pp != 0) continue;
          const RankMesh mesh =
              *RankMesh::Make(MakeLayout(tp, cp, world / tp / cp / pp, pp), world);
          for (int64_t rank = 0; rank < world; ++rank) {
            const Coords at = mesh.CoordsOf(rank);
            ASSERT_EQ(mesh.RankOf(at.tp, at.cp, at.dp, at.pp), rank);
            const auto group = mesh.GroupOf(rank, {Axis::kData, Axis::kContext});
            ASSERT_EQ(static_cast<int64_t>(group.size()), cp * mesh.SizeOf(Axis::kData));
            ASSERT_TRUE(std::find(group.begin(), group.end(), rank) != group.end());
          }
          ++meshes;
        }
      }
    }
  }
  EXPECT_GT(meshes, 1000);
}

TEST(RankMesh, GroupsOfAllAxesAreTheWorldAndOfNoneTheRank) {
  const RankMesh mesh = *RankMesh::Make(MakeLayout(2, 2, 3, 2), 24);
  EXPECT_EQ(mesh.GroupOf(7, {}), std::vector<int64_t>{7});
  EXPECT_EQ(mesh.GroupOf(7, {Axis::kTensor, Axis::kContext, Axis::kData, Axis::kPipeline}).size(),
            24u);
}

TEST(RankMesh, LeftmostAxisVariesFastest) {
  const RankMesh mesh = *RankMesh::Make(MakeLayout(2, 1, 2, 2, 1, 0, "tp-cp-ep-pp-dp"), 8);
  EXPECT_EQ(mesh.CoordsOf(2).pp, 1);
  EXPECT_EQ(mesh.CoordsOf(4).dp, 1);
  EXPECT_EQ((*RankMesh::Make(MakeLayout(2, 1, 2, 2), 8)).CoordsOf(2).dp, 1);
}

TEST(RankMesh, RefusesSizesThatAreNotTheWorld) {
  const auto message = [](const v1::Layout& layout, int64_t world) {
    return std::string(RankMesh::Make(layout, world).status().message());
  };
  EXPECT_THAT(message(MakeLayout(2, 1, 2, 1), 8), HasSubstr("is not the world of 8"));
  EXPECT_THAT(message(MakeLayout(-2, 1, -4, 1), 8), HasSubstr("is not the world"));
  EXPECT_THAT(message(MakeLayout(1 << 30, 1 << 30, 1 << 30, 1), 0), HasSubstr("at least 1"));
  EXPECT_THAT(message(MakeLayout(int64_t{1} << 40, int64_t{1} << 40, 1, 1), 1),
              HasSubstr("is not the world"));
  EXPECT_THAT(message(MakeLayout(1, 1, 4, 1, 3), 4), HasSubstr("does not divide the world"));
  EXPECT_THAT(message(MakeLayout(1, 1, 4, 1, 1, 1, "dp-tp"), 4),
              HasSubstr("rank_order is 'dp-tp'"));
  EXPECT_THAT(message(MakeLayout(2, 1, 2, 2, 4, 1, "tp-cp-ep-pp-dp"), 8),
              HasSubstr("equal data parallelism"));
}

}  // namespace
}  // namespace mega::planner
