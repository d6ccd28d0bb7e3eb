// Columns for people. Scripts take -o json: a table's columns may change.
#pragma once

#include <string>
#include <vector>

namespace mega::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header);
  // As many cells as the header has. Numbers ("1.5", "-", "3/20") align right; a text of several
  // lines (what an engine said last) stays in its row.
  void AddRow(std::vector<std::string> cells);
  std::string ToString(bool with_header = true) const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace mega::cli
