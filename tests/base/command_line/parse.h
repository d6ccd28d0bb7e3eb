// What comes of words that are given to a program.
#pragma once

#include "base/command_line/command_line.h"
#include "gtest/gtest.h"

namespace mega {

struct Outcome {
  std::optional<int> code;
  std::string out;
  std::string err;
};

inline Outcome Parse(Program& program, std::vector<std::string> words) {
  words.insert(words.begin(), "/usr/bin/what-it-was-started-as");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = program.Parse(static_cast<int>(argv.size()), argv.data());
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

}  // namespace mega
