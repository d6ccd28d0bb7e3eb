// Task `generate`: text from a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "worker/engine/inference/sampling.h"

namespace mega::engine {

struct GenerateOptions {
  std::string model;
  std::vector<std::string> prompts;
  std::vector<int32_t> ids;
  int64_t max_new_tokens = 200;
  bool greedy = false;
  inference::SamplingOptions sampling{.temperature = 0.8};
  std::string output = "text";
  int threads = 0;
};

int Generate(const GenerateOptions& options);

}  // namespace mega::engine
