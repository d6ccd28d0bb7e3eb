// A canvas of dots; consecutive points are joined. Many points fall on one column when a run is
// long: their vertical span is drawn, so that noise stays visible and nothing is averaged away.
#include "cli/view/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fmt/core.h"

namespace mega::cli {
namespace {

constexpr int kDotsAcross = 2;
constexpr int kDotsDown = 4;
constexpr int kLabelWidth = 8;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void Include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Position of `value` in 0 … steps−1.
  int Place(double value, int steps) const {
    if (high <= low) return steps / 2;
    const double share = (value - low) / (high - low);
    return std::clamp(static_cast<int>(std::lround(share * (steps - 1))), 0, steps - 1);
  }
};

// U+2800 + dot mask. Dots are numbered 1 2 3 7 down the left column, 4 5 6 8 down the right.
std::string Braille(unsigned mask) {
  const unsigned code = 0x2800 + mask;
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns), rows_(rows), masks_(columns * rows, 0), markers_(columns * rows, '\0') {}

  int dots_across() const { return columns_ * kDotsAcross; }
  int dots_down() const { return rows_ * kDotsDown; }

  void Dot(int x, int y) {
    static constexpr unsigned kBits[kDotsDown][kDotsAcross] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const int cell = y / kDotsDown * columns_ + x / kDotsAcross;
    masks_[cell] |= kBits[y % kDotsDown][x % kDotsAcross];
  }
  void Line(int x0, int y0, int x1, int y1) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) Dot(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps);
  }
  void Mark(int x, int y, char marker) {
    markers_[y / kDotsDown * columns_ + x / kDotsAcross] = marker;
  }
  std::string Row(int row, const Palette& palette) const {
    std::string line;
    const std::string* color = nullptr;  // of what was drawn last
    const auto draw = [&](const std::string& wanted, const std::string& text) {
      if (color != &wanted) line += wanted;
      color = &wanted;
      line += text;
    };
    for (int column = 0; column < columns_; ++column) {
      const int cell = row * columns_ + column;
      if (markers_[cell] != '\0') {
        draw(palette.yellow, std::string(1, markers_[cell]));
      } else {
        draw(palette.blue, masks_[cell] == 0 ? " " : Braille(masks_[cell]));
      }
    }
    line.resize(line.find_last_not_of(' ') + 1);
    return line + palette.reset;
  }

 private:
  int columns_, rows_;
  std::vector<unsigned> masks_;
  std::vector<char> markers_;
};

bool IsFinite(const ChartPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

}  // namespace

std::string DrawChart(const std::vector<ChartSeries>& series, const std::string& x_name, int width,
                      int height, const Palette& palette) {
  Range x, y;
  for (const ChartSeries& one : series) {
    for (const ChartPoint& point : one.points) {
      if (!IsFinite(point)) continue;
      x.Include(point.x);
      y.Include(point.y);
    }
  }
  if (x.high < x.low) return "";
  const int columns = std::max(width, 30) - kLabelWidth - 2;
  const int rows = std::max(height, 6) - 3;  // legend, axis, labels of x
  Canvas canvas(columns, rows);
  const auto down = [&](double value) {
    return canvas.dots_down() - 1 - y.Place(value, canvas.dots_down());
  };
  std::string legend = std::string(kLabelWidth + 2, ' ');
  for (const ChartSeries& one : series) {
    if (one.points.empty()) continue;
    const std::string sign = one.marker == '\0'
                                 ? palette.blue + Braille(0x12) + Braille(0x24) + palette.reset
                                 : palette.yellow + one.marker + palette.reset;
    legend += fmt::format("{} {}   ", sign, one.name);
    const ChartPoint* before = nullptr;
    for (const ChartPoint& point : one.points) {
      if (!IsFinite(point)) continue;
      const int px = x.Place(point.x, canvas.dots_across()), py = down(point.y);
      if (one.marker != '\0') {
        canvas.Mark(px, py, one.marker);
      } else if (before == nullptr) {
        canvas.Dot(px, py);
      } else {
        canvas.Line(x.Place(before->x, canvas.dots_across()), down(before->y), px, py);
      }
      before = &point;
    }
  }
  legend.resize(legend.find_last_not_of(' ') + 1);
  std::string out = legend + "\n";
  for (int row = 0; row < rows; ++row) {
    std::string label;
    // The values at the top, middle and bottom rows.
    if (row == 0 || row == rows - 1 || row == rows / 2) {
      const double share = rows == 1 ? 0 : static_cast<double>(row) / (rows - 1);
      label = fmt::format("{:.4g}", y.high - share * (y.high - y.low));
    }
    out += fmt::format("{:>{}} ┤{}\n", label, kLabelWidth, canvas.Row(row, palette));
  }
  std::string axis;
  for (int i = 0; i < columns; ++i) axis += "─";
  out += fmt::format("{:>{}} └{}\n", "", kLabelWidth, axis);
  const std::string left = fmt::format("{:g}", x.low);
  const std::string right = fmt::format("{} {:g}", x_name, x.high);
  const int gap = std::max(1, columns - DisplayWidth(left) - DisplayWidth(right));
  out += fmt::format("{:>{}}  {}{}{}\n", "", kLabelWidth, left, std::string(gap, ' '), right);
  return out;
}

}  // namespace mega::cli
