// What `run` shows while a job trains and after it: a progress line on a terminal, a line a step
// elsewhere; events as they come; the loss chart.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "cli/view/chart.h"
#include "cli/view/progress.h"
#include "mega/v1/job.pb.h"
#include "mega/v1/telemetry.pb.h"

namespace mega::cli {

class RunView {
 public:
  // `steps_out`: file that gets each step as a JSON line, flushed; empty: none.
  static absl::StatusOr<RunView> Open(const std::string& steps_out, ColorMode color);
  RunView(RunView&& other) noexcept;
  RunView& operator=(RunView&&) = delete;
  ~RunView();

  void Step(const v1::StepReport& report);
  void Event(const v1::JobEvent& event);
  // A sentence about something that is no event of the job.
  void Note(const std::string& text);
  // What is going on before the first step.
  void State(const std::string& text);
  // Takes the progress line away, for text of other origin or the end.
  void Clear();

  std::string Chart() const;  // empty with fewer than two steps
  int64_t steps() const { return static_cast<int64_t>(train_.size()); }
  const v1::StepReport& last() const { return progress_.last; }
  // Why `steps_out` lacks a step.
  const absl::Status& steps_out() const { return steps_out_status_; }
  const Palette& palette() const { return palette_; }

 private:
  RunView(FILE* steps_out, ColorMode color);
  void Draw(bool at_once);
  void Line(const std::string& text);

  FILE* steps_out_ = nullptr;
  absl::Status steps_out_status_;
  bool live_ = false;  // standard output is a terminal: there is a progress line
  Palette palette_;
  Progress progress_;
  absl::Time drawn_ = absl::InfinitePast();
  bool has_line_ = false;
  std::vector<ChartPoint> train_;
  std::vector<ChartPoint> validation_;
};

}  // namespace mega::cli
