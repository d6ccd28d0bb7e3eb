// Fenced blocks of a Markdown file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mega::docs {

struct Block {
  std::string file;      // as given
  int line = 0;          // of its opening fence
  std::string language;  // the word after the fence; empty: something shown, not typed
  std::string text;      // whole lines
};

// A block that is never closed runs to the end.
std::vector<Block> ReadBlocks(const std::filesystem::path& root, const std::string& file);

}  // namespace mega::docs
