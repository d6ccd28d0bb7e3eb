// How far an offline task is: one line of standard error on a terminal, rewritten a few times a
// second and taken away at the end; nothing in a pipe.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "fmt/core.h"

namespace mega::engine {

class ProgressLine {
 public:
  ProgressLine() : is_shown_(isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() {
    if (is_drawn_) std::fputs("\r\033[K", stderr);
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `text()` stands behind the bar and is made only when the line is drawn.
  template <typename Text>
  void Show(int64_t done, int64_t total, const Text& text) {
    const auto now = std::chrono::steady_clock::now();
    if (!is_shown_ || now - drawn_ < std::chrono::milliseconds(100)) return;
    drawn_ = now;
    is_drawn_ = true;
    constexpr int kWidth = 30;
    const double share =
        total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0)
                  : 1.0;
    const auto filled = static_cast<size_t>(share * kWidth);
    const std::string line = fmt::format("\r[{}{}] {:5.1f} %  {}\033[K", std::string(filled, '#'),
                                         std::string(kWidth - filled, '.'), 100 * share, text());
    std::fputs(line.c_str(), stderr);
  }
  // Since the beginning; never 0.
  double seconds() const {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start_;
    return std::max(since.count(), 1e-9);
  }

 private:
  const bool is_shown_;
  bool is_drawn_ = false;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point drawn_ = start_;
};

}  // namespace mega::engine
