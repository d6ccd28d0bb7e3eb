// Interleaves the logs of several ranks line by line, each with its rank in front.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace mega::cli {

class LinePrefixer {
 public:
  // Off: bytes pass as they are.
  void set_prefixed(bool prefixed) { prefixed_ = prefixed; }

  // What may be printed now: whole lines. A line longer than 64 KiB is cut into pieces.
  std::string Add(int64_t rank, std::string_view data);
  // What is left of unfinished lines.
  std::string Flush();

 private:
  bool prefixed_ = false;
  std::map<int64_t, std::string> partial_;
};

}  // namespace mega::cli
