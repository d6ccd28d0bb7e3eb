#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cli/view/chart.h"
#include "cli/view/json.h"
#include "cli/view/progress.h"
#include "cli/view/shell_word.h"
#include "cli/view/step_line.h"
#include "cli/view/table.h"
#include "cli/view/words.h"
#include "mega/v1/job.pb.h"
#include "nlohmann/json.hpp"

namespace mega::cli {
namespace {

// Case: `run` offered commands that a shell took apart, or worse, ran a piece of.
TEST(ShellWord, IsOneWordForAShell) {
  for (const char* plain : {"/runs/a-1.5/step_00000020", "checkpoint.load=/a", "job.yaml"})
    EXPECT_EQ(ShellWord(plain), plain);
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("sp ace"), "'sp ace'");
  EXPECT_EQ(ShellWord("$(x) \"é"), "'$(x) \"é'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
}

v1::StepReport Report(int64_t step, double loss) {
  v1::StepReport report;
  report.set_step(step);
  report.set_total_steps(20);
  report.set_loss(loss);
  report.set_grad_norm(1.2345);
  report.set_lr(3e-5);
  report.set_tokens_per_s(12345.4);
  report.set_mfu(0.312);
  report.set_step_seconds(2);
  report.set_attempt(1);
  return report;
}

TEST(StepLine, IsTheOneThatScriptsMatch) {
  v1::StepReport report = Report(1, 5.5452);
  EXPECT_EQ(StepLine(report),
            "step 1/20 loss 5.5452 grad_norm 1.23 lr 3.0e-05 tokens/s 12345 mfu 31.2%");
  report.set_validation_loss(2.12345);
  EXPECT_EQ(StepLine(report),
            "step 1/20 loss 5.5452 grad_norm 1.23 lr 3.0e-05 tokens/s 12345 mfu 31.2% "
            "validation_loss 2.1235");
}

TEST(Json, HasProtoNamesNumbersAndUnsetScalars) {
  v1::StepReport report = Report(3, 0.1);
  nlohmann::json json = nlohmann::json::parse(ToJsonLine(report));
  EXPECT_EQ(json["step"], 3);
  EXPECT_EQ(json["tokens_per_s"], 12345.4);
  EXPECT_EQ(json["rank"], 0);
  EXPECT_FALSE(json.contains("validation_loss")) << "unset optional fields stay away";
  EXPECT_EQ(json["loss"].get<double>(), 0.1) << "doubles keep all their digits";
  report.set_validation_loss(0);
  EXPECT_EQ(nlohmann::json::parse(ToJsonLine(report))["validation_loss"], 0);
}

TEST(Json, NumbersReachIntoRepeatedMessagesButNotIntoText) {
  v1::Job job;
  (*job.mutable_metadata()->mutable_labels())["step"] = "20";
  job.set_uid("77");
  job.add_attempts()->add_ranks()->set_rank(5);
  job.add_checkpoints()->add_slices()->set_xxh64(~uint64_t{0});
  const nlohmann::json json = nlohmann::json::parse(ToJson(job));
  EXPECT_EQ(json["uid"], "77");
  EXPECT_EQ(json["metadata"]["labels"]["step"], "20");
  EXPECT_EQ(json["attempts"][0]["ranks"][0]["rank"], 5);
  EXPECT_EQ(json["checkpoints"][0]["slices"][0]["xxh64"], "18446744073709551615");
}

TEST(Yaml, QuotesWhatWouldBeReadAsSomethingElse) {
  EXPECT_EQ(ToYaml(nlohmann::ordered_json{{"a", "plain"},
                                          {"b", "true"},
                                          {"c", "1"},
                                          {"d", 1},
                                          {"e", {{"f", nlohmann::ordered_json::array()}}},
                                          {"g", {"x", "y: z"}}}),
            "a: plain\nb: \"true\"\nc: \"1\"\nd: 1\ne:\n  f: []\ng:\n  - x\n  - \"y: z\"\n");
}

// Case: the reason of a job, which holds what an engine said last, tore the table.
TEST(Table, ATextOfSeveralLinesStaysInItsRow) {
  Table table({"NAME", "REASON"});
  table.AddRow({"tiny", "rank 1 ended: one\ntwo\tthree"});
  EXPECT_EQ(table.ToString(), "NAME  REASON\ntiny  rank 1 ended: one two three\n");
}

TEST(Table, AlignsTextLeftAndNumbersRight) {
  Table table({"NAME", "STEP", "REASON"});
  table.AddRow({"a", "5/20", "é"});
  table.AddRow({"longer", "12/20", ""});
  EXPECT_EQ(table.ToString(),
            "NAME     STEP  REASON\n"
            "a        5/20  é\n"
            "longer  12/20\n");
  EXPECT_EQ(table.ToString(false),
            "a        5/20  é\n"
            "longer  12/20\n");
}

TEST(Words, AreShort) {
  EXPECT_EQ(PhaseName(v1::JOB_PHASE_RECOVERING), "Recovering");
  EXPECT_EQ(FormatSpan(absl::Milliseconds(1234)), "1.2s");
  EXPECT_EQ(FormatSpan(absl::Seconds(3725)), "1h02m");
  EXPECT_EQ(FormatSpan(absl::Seconds(-5)), "0s");
  EXPECT_EQ(FormatCount(950), "950");
  EXPECT_EQ(FormatCount(999.9), "1.00k");
  EXPECT_EQ(FormatCount(1.25e6), "1.25M");
  v1::ExitStatus exit;
  exit.set_code(1);
  EXPECT_EQ(FormatExit(exit), "code 1");
  exit.set_signal(9);
  exit.set_killed_by_worker(true);
  EXPECT_EQ(FormatExit(exit), "signal 9 (SIGKILL) by the worker");
}

TEST(Progress, GivesWayToNarrowTerminals) {
  Progress progress;
  progress.state = "starting ranks";
  EXPECT_EQ(ProgressLine(progress, 80), "starting ranks");
  AddStep(Report(10, 2.5), progress);
  progress.validation_loss = 2.25;
  progress.restarts = 1;
  EXPECT_EQ(ProgressLine(progress, 84),
            "10/20 · loss 2.5000 · val 2.2500 · 12.3k tok/s · ETA 20s · MFU 31.2% · restarts 1");
  EXPECT_EQ(ProgressLine(progress, 120),
            "▕████████████            ▏ 10/20 · loss 2.5000 · val 2.2500 · 12.3k tok/s · ETA 20s · "
            "MFU 31.2% · restarts 1");
  EXPECT_EQ(ProgressLine(progress, 20), "10/20 · loss 2.5000");
  for (int width = 1; width < 130; ++width)
    EXPECT_LE(DisplayWidth(ProgressLine(progress, width)), std::max(width, 0)) << width;
}

TEST(Chart, DrawsAFallingLineAndItsAxes) {
  ChartSeries train{.name = "training loss"};
  for (int step = 1; step <= 20; ++step) train.points.push_back({1.0 * step, 21.0 - step});
  ChartSeries validation{.name = "validation loss", .points = {{20, 1}}, .marker = 'o'};
  EXPECT_EQ(DrawChart({train, validation}, "step", 40, 8, {}),
            "          ⠒⠤ training loss   o validation loss\n"
            "      20 ┤⠉⠑⠒⠤⢄⣀\n"
            "         ┤      ⠉⠉⠒⠢⠤⣀⡀\n"
            "    10.5 ┤            ⠈⠉⠒⠢⠤⣀⡀\n"
            "         ┤                  ⠈⠉⠒⠢⠤⢄⣀\n"
            "       1 ┤                         ⠉⠑⠒⠤o\n"
            "         └──────────────────────────────\n"
            "          1                      step 20\n");
}

TEST(Chart, BearsWhatARunMayBring) {
  EXPECT_EQ(DrawChart({}, "step", 80, 16, {}), "");
  EXPECT_EQ(DrawChart({{"a", {{1, NAN}, {2, INFINITY}}}}, "step", 80, 16, {}), "");
  EXPECT_THAT(DrawChart({{"a", {{1, 2}}}}, "step", 1, 1, {}), ::testing::HasSubstr("⠒⠤ a"));
  EXPECT_NE(DrawChart({{"a", {{1, 2}, {2, NAN}, {3, 2}}}}, "step", 80, 16, {}), "");
  ChartSeries many{.name = "a"};
  for (int step = 0; step < 100'000; ++step)
    many.points.push_back({1.0 * step, std::sin(step) * 1e300});
  EXPECT_LT(DrawChart({many}, "step", 80, 16, {}).size(), 10'000u);
}

}  // namespace
}  // namespace mega::cli
