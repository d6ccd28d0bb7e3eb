#include "cli/commands/missing_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fmt/core.h"

namespace mega::cli {
namespace {

bool IsReadable(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// A path of data is a file, or the prefix of a built dataset.
bool IsData(const std::string& path) {
  return IsReadable(path) || (IsReadable(path + ".bin") && IsReadable(path + ".idx"));
}

}  // namespace

std::vector<Problem> MissingFiles(const JobFile& job, const std::string& source) {
  std::vector<Problem> missing;
  const auto check = [&](const std::string& field, const std::string& path, bool is_there) {
    const int error = errno;
    if (is_there) return;
    missing.push_back(PlaceProblem(job, source, field,
                                   fmt::format("{}: {}: {}; relative paths count from the job file",
                                               field, path, std::strerror(error))));
  };
  const v1::Data& data = job.spec.data();
  for (int i = 0; i < data.paths_size(); ++i)
    check(fmt::format("data.paths[{}]", i), data.paths(i), IsData(data.paths(i)));
  for (int i = 0; i < data.validation().paths_size(); ++i) {
    const std::string& path = data.validation().paths(i);
    check(fmt::format("data.validation.paths[{}]", i), path, IsData(path));
  }
  if (job.spec.checkpoint().has_load())
    check("checkpoint.load", job.spec.checkpoint().load(),
          IsReadable(job.spec.checkpoint().load()));
  return missing;
}

}  // namespace mega::cli
