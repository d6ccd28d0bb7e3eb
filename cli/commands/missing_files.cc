#include "cli/commands/missing_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fmt/core.h"

namespace mega::cli {
namespace {

// 0: it is there and may be read; else the errno that says why not.
int WhyUnreadable(const std::string& path) { return access(path.c_str(), R_OK) == 0 ? 0 : errno; }

// A path of data is a file, or the prefix of a built dataset.
int WhyNoData(const std::string& path) {
  const int error = WhyUnreadable(path);
  const bool is_built = WhyUnreadable(path + ".bin") == 0 && WhyUnreadable(path + ".idx") == 0;
  return is_built ? 0 : error;
}

}  // namespace

std::vector<Problem> MissingFiles(const JobFile& job, const std::string& source) {
  std::vector<Problem> missing;
  const auto check = [&](const std::string& field, const std::string& path, int error) {
    if (error == 0) return;
    missing.push_back(PlaceProblem(job, source, field,
                                   fmt::format("{}: {}: {}; relative paths count from the job file",
                                               field, path, std::strerror(error))));
  };
  const v1::Data& data = job.spec.data();
  for (int i = 0; i < data.paths_size(); ++i)
    check(fmt::format("data.paths[{}]", i), data.paths(i), WhyNoData(data.paths(i)));
  for (int i = 0; i < data.validation().paths_size(); ++i) {
    const std::string& path = data.validation().paths(i);
    check(fmt::format("data.validation.paths[{}]", i), path, WhyNoData(path));
  }
  if (job.spec.checkpoint().has_load())
    check("checkpoint.load", job.spec.checkpoint().load(),
          WhyUnreadable(job.spec.checkpoint().load()));
  return missing;
}

}  // namespace mega::cli
