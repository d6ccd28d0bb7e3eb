// Losses over steps, drawn in the terminal with braille dots (2 × 4 a character).
#pragma once

#include <string>
#include <vector>

#include "cli/view/terminal.h"

namespace mega::cli {

struct ChartPoint {
  double x;
  double y;  // points that are not finite are left out
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;  // by x
  char marker = '\0';              // '\0': a braille line; else this character at each point
};

// `width` columns and `height` rows of plot and labels together; at least 30 × 6. The y axis is cut
// so that the first steps' fall does not flatten the rest only when it must: it spans what is
// there.
std::string DrawChart(const std::vector<ChartSeries>& series, const std::string& x_name, int width,
                      int height, const Palette& palette);

}  // namespace mega::cli
