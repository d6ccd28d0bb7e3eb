#include "cli/spec/job_yaml.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "coordinator/planner/model/model_spec.h"
#include "coordinator/planner/spec/spec.h"
#include "fmt/core.h"

namespace mega::cli {

Problem PlaceProblem(const JobFile& job, const std::string& source, std::string field,
                     std::string message) {
  if (field.starts_with("spec.")) field = field.substr(5);
  for (std::string path = field; !path.empty();) {
    if (const auto found = job.places.find(path); found != job.places.end())
      return {found->second, std::move(field), std::move(message)};
    const size_t cut = path.find_last_of(".[");
    path.resize(cut == std::string::npos ? 0 : cut);
  }
  return {{source, {}}, std::move(field), std::move(message)};
}

std::string ToText(const Problem& problem) {
  const Position at = problem.place.at;
  return PrintableLine(at.line == 0 ? fmt::format("{}: {}", problem.place.source, problem.message)
                                    : fmt::format("{}:{}:{}: {}", problem.place.source, at.line,
                                                  at.column, problem.message));
}

absl::StatusOr<JobText> ReadJobText(const std::string& path, std::vector<std::string> overrides) {
  JobText out{.source = path, .overrides = std::move(overrides)};
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error) return NotFound("the current folder: {}", error.message());
  out.folder = here.string();
  std::ifstream file;
  std::istream* stream = &std::cin;
  if (path == "-") {
    out.source = "standard input";
  } else {
    if (std::filesystem::is_directory(path, error))
      return NotFound("{} is a folder; name the job file in it", path);
    file.open(path, std::ios::binary);
    if (!file) return Annotate(ErrnoStatus(errno, path), "job file");
    out.folder = std::filesystem::absolute(path).parent_path().string();
    stream = &file;
  }
  // One byte more than allowed is enough to refuse it.
  std::string buffer(kMaxYamlBytes + 1, '\0');
  stream->read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
  buffer.resize(static_cast<size_t>(stream->gcount()));
  out.text = std::move(buffer);
  return out;
}

namespace {

// model.hf names a folder of this machine, so it is read here and nowhere else.
void ReadHf(const JobText& text, ParsedJob& out) {
  if (!out.job.spec.model().has_hf()) return;
  const absl::Status status = planner::FillFromHf(*out.job.spec.mutable_model());
  for (absl::string_view line : absl::StrSplit(status.message(), '\n', absl::SkipEmpty()))
    out.problems.push_back(PlaceProblem(out.job, text.source, "model.hf", std::string(line)));
}

}  // namespace

ParsedJob ParseAndCheckJob(const JobText& text) {
  ParsedJob out = ParseJob(text);
  const bool is_whole = out.problems.empty();
  ReadHf(text, out);
  std::set<std::string> unread;  // what was written there is not in the spec
  for (const Problem& problem : out.problems) unread.insert(problem.field);
  for (const spec::Violation& violation :
       spec::Resolve(out.job.metadata, out.job.spec).violations) {
    if (unread.contains(violation.field)) continue;
    // Beside keys that could not be read, only what was written well enough to be judged.
    if (!is_whole && !out.job.places.contains(violation.field)) continue;
    out.problems.push_back(PlaceProblem(out.job, text.source, violation.field, violation.message));
  }
  return out;
}

}  // namespace mega::cli
