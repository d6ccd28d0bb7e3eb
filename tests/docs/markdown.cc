#include "tests/docs/markdown.h"

#include <fstream>

namespace mega::docs {

std::vector<Block> ReadBlocks(const std::filesystem::path& root, const std::string& file) {
  constexpr std::string_view kFence = "```";
  std::vector<Block> blocks;
  std::ifstream in(root / file);
  bool is_inside = false;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.starts_with(kFence)) {
      is_inside = !is_inside;
      if (is_inside)
        blocks.push_back(
            {.file = file, .line = number, .language = line.substr(kFence.size()), .text = ""});
    } else if (is_inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

}  // namespace mega::docs
