#include "coordinator/planner/schedule/schedule.h"

#include <map>
#include <set>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/temp_dir.h"

namespace mega::planner {
namespace {

using ::testing::HasSubstr;
using Kind = Action::Kind;

v1::ScheduleSpec Spec(int64_t stages) {
  v1::ScheduleSpec spec;
  spec.set_kind("1f1b");
  spec.set_stages(stages);
  spec.set_virtual_stages(1);
  return spec;
}

std::vector<Action> Make(int64_t stages, int64_t stage, int64_t micro_batches,
                         bool forward_only = false) {
  return *MakeSchedule(Spec(stages), stage, micro_batches, forward_only);
}

std::string Line(const std::vector<Action>& actions) {
  return absl::StrJoin(actions, " ",
                       [](std::string* out, const Action& action) { *out += ToString(action); });
}

TEST(Schedule, OneStageTakesEachMicroBatchForwardAndBackAtOnce) {
  EXPECT_EQ(Line(Make(1, 0, 2)), "F0 B0 W0 F1 B1 W1 ReduceGrads Step");
  EXPECT_EQ(Line(Make(1, 0, 2, true)), "F0 F1");
}

TEST(Schedule, FirstOfTwoStagesRunsOneAhead) {
  EXPECT_EQ(
      Line(Make(2, 0, 3)),
      "F0 SendF0 F1 SendF1 RecvB0 B0 W0 F2 SendF2 RecvB1 B1 W1 RecvB2 B2 W2 ReduceGrads Step");
  EXPECT_EQ(Line(Make(2, 1, 2)), "RecvF0 F0 B0 SendB0 W0 RecvF1 F1 B1 SendB1 W1 ReduceGrads Step");
  EXPECT_EQ(Line(Make(3, 1, 1, true)), "RecvF0 F0 SendF0");
}

TEST(Schedule, OrderEqualsMegatronCores) {
  const auto json = nlohmann::json::parse(
      testing::ReadFile(std::string(MEGA_TEST_DATA) + "/parallel/pipeline_schedules.json"));
  int compared = 0;
  for (const auto& config : json["configs"]) {
    if (!config["vpp"].is_null()) continue;
    std::vector<std::string> expected, actual;
    for (const auto& op : config["ops"])
      expected.push_back(op[0].get<std::string>() + std::to_string(op[1].get<int64_t>()));
    for (const Action& action : Make(config["pp"], config["pp_rank"], config["microbatches"]))
      if (action.kind == Kind::kForward || action.kind == Kind::kBackwardInput)
        actual.push_back(ToString(action));
    EXPECT_EQ(actual, expected);
    ++compared;
  }
  EXPECT_GE(compared, 6);
}

// Runs all stages against each other: sends go into a queue, receives wait for their micro-batch.
// Returns false on a deadlock.
bool Play(int64_t stages, int64_t micro_batches, bool forward_only) {
  std::vector<std::vector<Action>> actions;
  for (int64_t s = 0; s < stages; ++s)
    actions.push_back(Make(stages, s, micro_batches, forward_only));
  std::vector<size_t> at(static_cast<size_t>(stages));
  // Per stage what has arrived from below (forward) and from above (backward), in order.
  std::vector<std::vector<int64_t>> forward(static_cast<size_t>(stages) + 1), backward(forward);
  std::vector<size_t> forward_read(static_cast<size_t>(stages) + 1), backward_read(forward_read);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t s = 0; s < static_cast<size_t>(stages); ++s) {
      while (at[s] < actions[s].size()) {
        const Action& action = actions[s][at[s]];
        if (action.kind == Kind::kRecvForward) {
          if (forward_read[s] == forward[s].size()) break;
          EXPECT_EQ(forward[s][forward_read[s]++], action.micro_batch);
        } else if (action.kind == Kind::kRecvBackward) {
          if (backward_read[s] == backward[s].size()) break;
          EXPECT_EQ(backward[s][backward_read[s]++], action.micro_batch);
        } else if (action.kind == Kind::kSendForward) {
          forward[s + 1].push_back(action.micro_batch);
        } else if (action.kind == Kind::kSendBackward) {
          backward[s - 1].push_back(action.micro_batch);
        }
        ++at[s];
        moved = true;
      }
    }
  }
  for (size_t s = 0; s < static_cast<size_t>(stages); ++s)
    if (at[s] != actions[s].size()) return false;
  return true;
}

TEST(Schedule, NeverDeadlocks) {
  for (int64_t stages = 1; stages <= 16; ++stages)
    for (int64_t micro_batches : {1, 2, 3, 7, 16, 33})
      for (bool forward_only : {false, true})
        ASSERT_TRUE(Play(stages, micro_batches, forward_only)) << stages << " " << micro_batches;
}

TEST(Schedule, EachMicroBatchOnceInOrderWithBoundedLiveActivations) {
  for (int64_t stages = 1; stages <= 16; ++stages) {
    for (int64_t stage = 0; stage < stages; ++stage) {
      for (int64_t micro_batches = 1; micro_batches <= 20; ++micro_batches) {
        std::map<Kind, int64_t> next;
        int64_t live = 0, most = 0;
        const std::vector<Action> actions = Make(stages, stage, micro_batches);
        for (const Action& action : actions) {
          if (action.kind == Kind::kReduceGrads || action.kind == Kind::kStep) continue;
          ASSERT_EQ(action.micro_batch, next[action.kind]++) << Line(actions);
          if (action.kind == Kind::kForward) most = std::max(most, ++live);
          if (action.kind == Kind::kBackwardWeight) --live;
          // A backward follows its own forward, a weight its own input.
          ASSERT_LE(next[Kind::kBackwardInput], next[Kind::kForward]);
          ASSERT_LE(next[Kind::kBackwardWeight], next[Kind::kBackwardInput]);
        }
        ASSERT_EQ(live, 0);
        ASSERT_EQ(most, std::min(stages - stage, micro_batches));
        for (Kind kind : {Kind::kForward, Kind::kBackwardInput, Kind::kBackwardWeight})
          ASSERT_EQ(next[kind], micro_batches);
        ASSERT_EQ(next[Kind::kRecvForward], stage == 0 ? 0 : micro_batches);
        ASSERT_EQ(next[Kind::kSendForward], stage == stages - 1 ? 0 : micro_batches);
        ASSERT_EQ(actions[actions.size() - 2].kind, Kind::kReduceGrads);
        ASSERT_EQ(actions.back().kind, Kind::kStep);
      }
    }
  }
}

TEST(Schedule, RefusesByNameWhatIsNotThere) {
  const auto message = [](const v1::ScheduleSpec& spec, int64_t stage, int64_t micro_batches) {
    return std::string(MakeSchedule(spec, stage, micro_batches, false).status().message());
  };
  v1::ScheduleSpec spec = Spec(2);
  EXPECT_THAT(message(spec, 2, 4), HasSubstr("stage 2 is not one of the 2 stages"));
  EXPECT_THAT(message(spec, -1, 4), HasSubstr("stage -1"));
  EXPECT_THAT(message(spec, 0, 0), HasSubstr("0 micro-batches"));
  EXPECT_THAT(message(spec, 0, int64_t{1} << 60), HasSubstr("choose 1 to"));
  spec.set_virtual_stages(2);
  EXPECT_THAT(message(spec, 0, 4), HasSubstr("no virtual stages"));
  spec.set_kind("gpipe");
  EXPECT_THAT(message(spec, 0, 4), HasSubstr("schedule 'gpipe' is not implemented; choose 1f1b"));
}

}  // namespace
}  // namespace mega::planner
