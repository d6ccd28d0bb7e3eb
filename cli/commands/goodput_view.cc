#include "cli/commands/goodput_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "cli/client/errors.h"
#include "cli/view/table.h"
#include "cli/view/words.h"
#include "coordinator/planner/spec/goodput.h"
#include "fmt/core.h"
#include "nlohmann/json.hpp"

namespace mega::cli {
namespace {

constexpr int kBarWidth = 24;
constexpr double kRoundingSeconds = 1;

// In the order of a job's life.
constexpr std::array<std::pair<const char*, const char*>, 9> kMeanings = {{
    {"training", "steps made for the first time, waiting for their snapshots included"},
    {"rework", "steps made again after a restart or a roll-back"},
    {"starting", "from placement until the ranks are connected, or to the first step"},
    {"restoring", "loading the checkpoint, to the first step"},
    {"saving", "asked to give its devices up, until it has saved"},
    {"stopping", "until the last rank has ended"},
    {"recovering", "stood still before a failure was known, or waits after it"},
    {"queued", "waits for devices"},
    {"paused", "held by a user"},
}};

const char* Meaning(const std::string& cause) {
  for (const auto& [name, meaning] : kMeanings) {
    if (cause == name) return meaning;
  }
  return "";
}

size_t Place(const v1::GoodputCause& cause) {
  size_t place = 0;
  while (place < kMeanings.size() && cause.cause() != kMeanings[place].first) ++place;
  return place;
}

// In the order of a job's life; causes that a newer coordinator knows come last.
spec::GoodputSums SumsOf(const v1::Job& job, absl::Time now) {
  spec::GoodputSums sums = spec::SumGoodput(job.goodput(), now);
  std::ranges::stable_sort(sums.causes, {}, Place);
  return sums;
}

// Before the ledger began: of a job that is older than it. The clocks of two machines differ, too.
double UnknownSeconds(const v1::Job& job, const spec::GoodputSums& sums, absl::Time now) {
  const absl::Time end = job.has_end_time() ? FromProto(job.end_time()) : now;
  const double unknown = absl::ToDoubleSeconds(end - FromProto(job.create_time())) - sums.seconds;
  return unknown > kRoundingSeconds ? unknown : 0;
}

std::string Percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

// Eighths of a column, so that what is small shows.
std::string Bar(double share) {
  static constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths =
      static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kBarWidth * 8));
  std::string bar;
  for (size_t i = 0; i < eighths / 8; ++i) bar += "█";
  bar += kEighths[eighths % 8];
  return bar.empty() && share > 0 ? kEighths[1] : bar;
}

std::string DeviceTime(double device_seconds) {
  if (device_seconds < 100) return fmt::format("{:.1f} device-seconds", device_seconds);
  if (device_seconds < 3600) return fmt::format("{:.0f} device-seconds", device_seconds);
  return fmt::format("{:.1f} device-hours", device_seconds / 3600);
}

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

std::string GoodputLine(const v1::Job& job, absl::Time now) {
  const spec::GoodputSums sums = SumsOf(job, now);
  const std::optional<double> ratio = sums.Ratio();
  if (!ratio) return "";
  std::string line = fmt::format("{} of {}", Percent(*ratio), DeviceTime(sums.device_seconds));
  const char* separator = "; ";
  for (const v1::GoodputCause& cause : sums.causes) {
    const double share = Share(cause.device_seconds(), sums.device_seconds);
    if (cause.cause() == "training" || share < 0.001) continue;
    line += fmt::format("{}{} {}", std::exchange(separator, ", "), Printable(cause.cause()),
                        Percent(share));
  }
  return line;
}

std::string GoodputText(const v1::Job& job, absl::Time now, const Palette& palette) {
  const spec::GoodputSums sums = SumsOf(job, now);
  const double unknown = UnknownSeconds(job, sums, now);
  const std::string name = Printable(job.metadata().name());
  std::string out;
  if (const std::optional<double> ratio = sums.Ratio()) {
    out = fmt::format("{}goodput {}{}: of the {} that {} held, {} went into steps that stay\n",
                      palette.bold, Percent(*ratio), palette.reset, DeviceTime(sums.device_seconds),
                      name, DeviceTime(sums.training_device_seconds));
  } else {
    out = fmt::format("{} has held no device yet\n", name);
  }
  Table table({"CAUSE", "DEVICE-SECONDS", "SHARE", "", "WALL CLOCK", "MEANING"});
  for (const v1::GoodputCause& cause : sums.causes) {
    const double share = Share(cause.device_seconds(), sums.device_seconds);
    const bool holds = cause.device_seconds() > 0;
    const std::string now_doing = cause.cause() == job.goodput().open_cause() ? " (now)" : "";
    table.AddRow({Printable(cause.cause()) + now_doing,
                  holds ? fmt::format("{:.1f}", cause.device_seconds()) : "-",
                  holds ? Percent(share) : "-", "|" + Bar(share),
                  FormatSpan(absl::Seconds(cause.seconds())), Meaning(cause.cause())});
  }
  if (unknown > 0) {
    table.AddRow({"unknown", "-", "-", "|", FormatSpan(absl::Seconds(unknown)),
                  "before the coordinator kept this ledger, or clocks that differ"});
  }
  return out + "\n" + table.ToString();
}

nlohmann::ordered_json GoodputJson(const v1::Job& job, absl::Time now) {
  const spec::GoodputSums sums = SumsOf(job, now);
  const std::optional<double> ratio = sums.Ratio();
  nlohmann::ordered_json json = {{"name", job.name()},
                                 {"goodput", nullptr},
                                 {"wall_seconds", sums.seconds},
                                 {"device_seconds", sums.device_seconds},
                                 {"unknown_seconds", UnknownSeconds(job, sums, now)},
                                 {"open_cause", job.goodput().open_cause()},
                                 {"causes", nlohmann::ordered_json::array()}};
  if (ratio) json["goodput"] = *ratio;
  for (const v1::GoodputCause& cause : sums.causes) {
    json["causes"].push_back({{"cause", cause.cause()},
                              {"wall_seconds", cause.seconds()},
                              {"device_seconds", cause.device_seconds()},
                              {"share", Share(cause.device_seconds(), sums.device_seconds)}});
  }
  return json;
}

}  // namespace mega::cli
