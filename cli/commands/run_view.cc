#include "cli/commands/run_view.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/time/clock.h"
#include "base/standard_output.h"
#include "cli/client/errors.h"
#include "cli/commands/event_line.h"
#include "cli/view/json.h"
#include "cli/view/step_line.h"

namespace mega::cli {
namespace {

constexpr absl::Duration kBetweenFrames = absl::Milliseconds(100);
constexpr int kChartHeight = 16;
constexpr int kWidestChart = 110;

}  // namespace

absl::StatusOr<RunView> RunView::Open(const std::string& steps_out, ColorMode color) {
  FILE* file = nullptr;
  if (!steps_out.empty()) {
    file = std::fopen(steps_out.c_str(), "we");
    if (file == nullptr) return ErrnoStatus(errno, "--steps-out " + steps_out);
  }
  return RunView(file, color);
}

RunView::RunView(FILE* steps_out, ColorMode color)
    : steps_out_(steps_out),
      live_(IsTerminal(STDOUT_FILENO)),
      palette_(PaletteFor(STDOUT_FILENO, color)) {}

RunView::RunView(RunView&& other) noexcept
    : steps_out_(std::exchange(other.steps_out_, nullptr)),
      live_(other.live_),
      palette_(std::move(other.palette_)) {}

RunView::~RunView() {
  if (steps_out_ != nullptr) std::fclose(steps_out_);
}

void RunView::Step(const v1::StepReport& report) {
  const double step = static_cast<double>(report.step());
  // After a restart steps are done again: the later report is the one that counts.
  const auto forget = [step](std::vector<ChartPoint>& points) {
    while (!points.empty() && points.back().x >= step) points.pop_back();
  };
  forget(train_);
  forget(validation_);
  train_.push_back({step, report.loss()});
  if (report.has_validation_loss()) validation_.push_back({step, report.validation_loss()});
  progress_.restarts = std::max(progress_.restarts, report.attempt() - 1);
  AddStep(report, progress_);
  if (steps_out_ != nullptr) {
    const std::string line = ToJsonLine(report) + "\n";
    if (std::fputs(line.c_str(), steps_out_) < 0 || std::fflush(steps_out_) != 0)
      steps_out_status_.Update(ErrnoStatus(errno, "--steps-out"));
  }
  if (live_) {
    Draw(report.step() == report.total_steps());
  } else {
    Line(StepLine(report));
  }
}

void RunView::Event(const v1::JobEvent& event) { Line(EventLine(event, palette_)); }

void RunView::Note(const std::string& text) { Line(Printable(text)); }

void RunView::State(const std::string& text) {
  if (text == progress_.state) return;
  progress_.state = Printable(text);
  Draw(true);
}

void RunView::Line(const std::string& text) {
  Clear();
  WriteStandardOutput(text + "\n");
  if (live_) Draw(true);
}

void RunView::Draw(bool at_once) {
  const absl::Time now = absl::Now();
  if (!live_ || (!at_once && now - drawn_ < kBetweenFrames)) return;
  drawn_ = now;
  has_line_ = true;
  // The last column stays free: writing into it makes some terminals wrap.
  const std::string line = ProgressLine(progress_, TerminalWidth(STDOUT_FILENO) - 1);
  WriteStandardOutput("\r\x1b[K" + line);
}

void RunView::Clear() {
  if (!std::exchange(has_line_, false)) return;
  WriteStandardOutput("\r\x1b[K");
}

std::string RunView::Chart() const {
  if (train_.size() < 2) return "";
  return DrawChart({{"training loss", train_}, {"validation loss", validation_, 'o'}}, "step",
                   std::min(TerminalWidth(STDOUT_FILENO) - 1, kWidestChart), kChartHeight,
                   palette_);
}

}  // namespace mega::cli
