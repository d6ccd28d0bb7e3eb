#include "cli/view/table.h"

#include <algorithm>

#include "base/check.h"
#include "cli/view/terminal.h"

namespace mega::cli {
namespace {

bool IsNumeric(const std::string& cell) {
  if (cell.empty() || cell == "-") return true;
  return (cell[0] >= '0' && cell[0] <= '9') || (cell[0] == '-' && cell.size() > 1);
}

}  // namespace

Table::Table(std::vector<std::string> header) : header_(std::move(header)) {}

void Table::AddRow(std::vector<std::string> cells) {
  MEGA_CHECK_EQ(cells.size(), header_.size());
  for (std::string& cell : cells) {
    std::ranges::replace_if(
        cell, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  }
  rows_.push_back(std::move(cells));
}

std::string Table::ToString(bool with_header) const {
  const size_t columns = header_.size();
  std::vector<int> width(columns, 0);
  std::vector<bool> right(columns, !rows_.empty());
  for (size_t c = 0; c < columns; ++c) {
    if (with_header) width[c] = DisplayWidth(header_[c]);
    for (const auto& row : rows_) {
      width[c] = std::max(width[c], DisplayWidth(row[c]));
      if (!IsNumeric(row[c])) right[c] = false;
    }
  }
  std::string out;
  const auto add = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t c = 0; c < columns; ++c) {
      if (c > 0) line += "  ";
      const std::string padding(static_cast<size_t>(width[c] - DisplayWidth(cells[c])), ' ');
      line += right[c] ? padding + cells[c] : cells[c] + padding;
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  if (with_header) add(header_);
  for (const auto& row : rows_) add(row);
  return out;
}

}  // namespace mega::cli
