#include "worker/engine/optimizer/lr_schedule.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/engine/harness/reference.h"

namespace mega::optimizer {
namespace {

using ::testing::HasSubstr;

v1::Optimizer Options(const std::string& schedule, double lr, double min_lr, int64_t warmup) {
  v1::Optimizer options;
  options.set_schedule(schedule);
  options.set_lr(lr);
  options.set_min_lr(min_lr);
  options.set_warmup_steps(warmup);
  return options;
}

// Every table of the file whose rule this release has; the others are named.
TEST(LrSchedule, EqualsMegatronCore) {
  const nlohmann::json file = testing::ReadJson("parallel/lr_schedules.json");
  const std::set<std::string> not_yet = {"inverse-square-root", "WSD"};
  int compared = 0;
  for (const auto& config : file.at("configs")) {
    const auto& params = config.at("params");
    const std::string style = params.at("lr_decay_style");
    if (not_yet.contains(style)) continue;
    const auto schedule = LrSchedule::Make(
        Options(style, params.at("max_lr"), params.at("min_lr"), params.at("lr_warmup_steps")),
        params.at("lr_decay_steps"));
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    for (const auto& row : config.at("rows_step_lr_wd")) {
      const double expected = row.at(1);
      EXPECT_NEAR(schedule->At(row.at(0)), expected, 1e-12 * 3e-4)
          << style << " after " << row.at(0);
    }
    ++compared;
  }
  EXPECT_EQ(compared, 6);
}

TEST(LrSchedule, EqualsTheStoredCurve) {
  const nlohmann::json curve = testing::ReadJson("curves/llama/curve.json");
  const auto& h = curve.at("hyperparameters");
  const auto schedule = LrSchedule::Make(
      Options("cosine", h.at("max_lr"), h.at("min_lr"), h.at("warmup")), h.at("steps"));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  for (int64_t step = 1; step <= 50; ++step)
    EXPECT_DOUBLE_EQ(schedule->At(step), curve.at("lr").at(step - 1)) << step;
}

TEST(LrSchedule, RefusesWhatCannotBe) {
  EXPECT_THAT(std::string(LrSchedule::Make(Options("wsd", 1, 0, 0), 10).status().message()),
              HasSubstr("optimizer.schedule is \"wsd\"; choose"));
  EXPECT_THAT(std::string(LrSchedule::Make(Options("linear", 1, 0, 11), 10).status().message()),
              HasSubstr("warmup_steps is 11 but the job has 10"));
  EXPECT_THAT(std::string(LrSchedule::Make(Options("linear", 1, 2, 0), 10).status().message()),
              HasSubstr("min_lr is 2 but optimizer.lr is 1"));
  EXPECT_TRUE(LrSchedule::Make(Options("linear", 1, 0, 10), 10).ok());
}

}  // namespace
}  // namespace mega::optimizer
