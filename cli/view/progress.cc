#include "cli/view/progress.h"

#include <algorithm>
#include <vector>

#include "absl/time/time.h"
#include "cli/view/terminal.h"
#include "cli/view/words.h"
#include "fmt/core.h"

namespace mega::cli {
namespace {

constexpr int kLongestBar = 24;
constexpr int kShortestBar = 6;
constexpr double kSmoothing = 0.1;

// Eighths of a character, so that a long run visibly moves.
std::string Bar(double share, int width) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::clamp(share, 0.0, 1.0) * width * 8);
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[eighths % 8];
  bar += std::string(static_cast<size_t>(width - (eighths + 7) / 8), ' ');
  return fmt::format("▕{}▏", bar);
}

}  // namespace

void AddStep(const v1::StepReport& report, Progress& progress) {
  progress.last = report;
  if (report.has_validation_loss()) progress.validation_loss = report.validation_loss();
  const double seconds = report.step_seconds();
  progress.seconds_per_step =
      progress.seconds_per_step == 0
          ? seconds
          : progress.seconds_per_step * (1 - kSmoothing) + seconds * kSmoothing;
}

std::string ProgressLine(const Progress& progress, int width) {
  const v1::StepReport& last = progress.last;
  if (last.step() == 0) return progress.state;
  std::vector<std::string> figures = {fmt::format("{}/{}", last.step(), last.total_steps()),
                                      fmt::format("loss {:.4f}", last.loss())};
  if (progress.validation_loss.has_value())
    figures.push_back(fmt::format("val {:.4f}", *progress.validation_loss));
  figures.push_back(fmt::format("{} tok/s", FormatCount(last.tokens_per_s())));
  const double left = static_cast<double>(last.total_steps() - last.step());
  if (left > 0)
    figures.push_back("ETA " + FormatSpan(absl::Seconds(left * progress.seconds_per_step)));
  figures.push_back(fmt::format("MFU {:.1f}%", last.mfu() * 100));
  if (progress.restarts > 0) figures.push_back(fmt::format("restarts {}", progress.restarts));

  std::string text;
  for (const std::string& figure : figures) {
    const std::string longer = text.empty() ? figure : text + " · " + figure;
    if (DisplayWidth(longer) > width) break;
    text = longer;
  }
  const int room = std::min(width - DisplayWidth(text) - 3, kLongestBar);
  if (room < kShortestBar) return text;
  const double share = static_cast<double>(last.step()) /
                       static_cast<double>(std::max<int64_t>(last.total_steps(), 1));
  return Bar(share, room) + " " + text;
}

}  // namespace mega::cli
