// job.yaml → JobMetadata and JobSpec, strictly: every key is known, given once, of its type and in
// its units, and everything wrong is reported at once, with file, line, column and path.
//   apiVersion: mega/v1
//   kind: TrainingJob
//   metadata: {name, namespace, labels}
//   spec: {model: {…}, data: {…}, …}
// The word `auto` leaves a key to its default or the planner. Relative paths count from the job
// file's folder, also those in --set. Safe on hostile text (yaml_tree.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/yaml/yaml_tree.h"
#include "mega/v1/job.pb.h"

namespace mega::cli {

// Where a key was written.
struct Place {
  std::string source;  // "job.yaml", or "--set training.steps=20"
  Position at;         // unknown for an override, and for what is missing
};

struct Problem {
  Place place;
  std::string field;    // "training.steps"; empty when it is about the file
  std::string message;  // a sentence that names the field
};

// "job.yaml:3:5: training.stepz is not a key; did you mean training.steps?"
std::string ToText(const Problem& problem);

struct JobText {
  std::string source;  // how messages name it
  std::string folder;  // absolute; where relative paths count from
  std::string text;
  std::vector<std::string> overrides;  // "training.steps=20", in the order given
};

// Reads `path`, or standard input when it is "-".
absl::StatusOr<JobText> ReadJobText(const std::string& path, std::vector<std::string> overrides);

struct JobFile {
  v1::JobMetadata metadata;
  v1::JobSpec spec;  // as written: defaults not applied; model.hf read, if checked
  std::map<std::string, Place> places;  // by path; list elements as "data.paths[1]"
};

struct ParsedJob {
  JobFile job;
  std::vector<Problem> problems;  // empty: the job is usable
};

// Syntax, keys and types.
ParsedJob ParseJob(const JobText& text);

// ParseJob, then model.hf read into the keys left unset, then the rules of planner/spec; what is
// wrong gets the place of its key.
ParsedJob ParseAndCheckJob(const JobText& text);

// A problem that somebody else found in `job` ("spec.training.steps", "training.steps"), with the
// place of its key, or of the section that should hold it.
Problem PlaceProblem(const JobFile& job, const std::string& source, std::string field,
                     std::string message);

}  // namespace mega::cli
