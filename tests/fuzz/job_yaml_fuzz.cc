// Any bytes as a job file: no crash, bounded time; what parses prints and parses back the same.
#include <cstdint>

#include "base/check.h"
#include "cli/spec/job_yaml.h"
#include "cli/spec/job_yaml_print.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using mega::cli::ParsedJob;
  // The last line is an override when it begins with '='.
  std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> overrides;
  if (const size_t cut = text.rfind("\n="); cut != std::string::npos) {
    overrides.push_back(text.substr(cut + 2));
    text.resize(cut + 1);
  }
  const ParsedJob parsed = mega::cli::ParseAndCheckJob(
      {.source = "fuzz", .folder = "/", .text = text, .overrides = overrides});
  for (const mega::cli::Problem& problem : parsed.problems)
    MEGA_CHECK(!mega::cli::ToText(problem).empty());
  if (!parsed.problems.empty()) return 0;
  const ParsedJob again =
      mega::cli::ParseJob({.source = "again",
                           .folder = "/",
                           .text = mega::cli::PrintJob(parsed.job.metadata, parsed.job.spec),
                           .overrides = {}});
  MEGA_CHECK_EQ(again.problems.size(), 0u);
  MEGA_CHECK_EQ(again.job.spec.SerializeAsString(), parsed.job.spec.SerializeAsString());
  return 0;
}
