#include "cli/commands/command.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/standard_output.h"
#include "cli/view/json.h"

namespace mega::cli {
namespace {

const char* Word(Output output) {
  switch (output) {
    case Output::kTable:
      return "table";
    case Output::kWide:
      return "wide";
    case Output::kJson:
      return "json";
    case Output::kYaml:
      return "yaml";
    case Output::kName:
      return "name";
  }
  return "";
}

}  // namespace

absl::StatusOr<Target> Shell::FindTarget() const {
  return cli::FindTarget(coordinator, name_space, tls,
                         [](const char* name) { return std::getenv(name); });
}

absl::StatusOr<Client> Shell::Connect() const {
  MEGA_ASSIGN_OR_RETURN(Target target, FindTarget());
  return Client::Connect(std::move(target));
}

Option AddJob(Command command, std::string& handle) {
  return command.AddOption("job", handle, "Name, id, or the unique start of one");
}

void AddOverrides(Command command, std::vector<std::string>& overrides) {
  command.AddOption("--set", overrides, "Override a key: training.steps=20")
      .TypeName("KEY=VALUE")
      .OneWordEach();
}

void AddOutput(Command command, Output& output, const std::vector<Output>& allowed) {
  std::map<std::string, Output> words;
  std::string list;
  for (const Output one : allowed) {
    words[Word(one)] = one;
    list += (list.empty() ? "" : ", ") + std::string(Word(one));
  }
  command
      .AddOption(
          "-o,--output", [&output, words](const std::string& word) { output = words.at(word); },
          "One of " + list)
      .TypeName("FORMAT")
      .Check([words, list](const std::string& word) {
        return words.contains(word) ? "" : fmt::format("'{}' is none of {}", word, list);
      });
}

std::string StreamedMessage(const google::protobuf::Message& message, Output output,
                            const std::function<std::string()>& line) {
  if (output == Output::kJson) return ToJsonLine(message) + "\n";
  if (output == Output::kYaml) return ToYamlDocument(message);
  return line() + "\n";
}

int Fail(const absl::Status& status) {
  TellError("megactl", status);
  return ExitCodeOf(status);
}

int AnswerJob(const absl::StatusOr<v1::Job>& job, Output output,
              const std::function<std::string(const v1::Job&)>& text) {
  if (!job.ok()) return Fail(job.status());
  if (output == Output::kJson) {
    PrintStdout(ToJson(*job));
  } else if (output == Output::kYaml) {
    PrintStdout(ToYaml(*job));
  } else {
    PrintStdout(text(*job));
  }
  return kExitOk;
}

int FailProblems(const std::vector<Problem>& problems, const std::string& consequence) {
  for (const Problem& problem : problems) std::fprintf(stderr, "%s\n", ToText(problem).c_str());
  std::fprintf(stderr, "megactl: %zu %s; %s\n", problems.size(),
               problems.size() == 1 ? "problem" : "problems", consequence.c_str());
  return kExitInvalidSpec;
}

LoadedJob LoadJob(const std::string& path, const std::vector<std::string>& overrides,
                  const std::string& name_space, const std::string& consequence) {
  LoadedJob loaded;
  absl::StatusOr<JobText> text = ReadJobText(path, overrides);
  if (!text.ok()) {
    loaded.exit_code = Fail(text.status());
    return loaded;
  }
  loaded.source = text->source;
  ParsedJob parsed = ParseAndCheckJob(*text);
  if (!parsed.problems.empty()) {
    loaded.exit_code = FailProblems(parsed.problems, consequence);
    return loaded;
  }
  loaded.job = std::move(parsed.job);
  if (loaded.job.metadata.namespace_().empty() && !name_space.empty())
    loaded.job.metadata.set_namespace_(name_space);
  return loaded;
}

int FailRefused(const absl::Status& status, const LoadedJob& loaded,
                const std::string& consequence) {
  std::vector<Problem> problems;
  for (const FieldViolation& violation : ViolationsOf(status))
    problems.push_back(
        PlaceProblem(loaded.job, loaded.source, violation.field, violation.description));
  return problems.empty() ? Fail(status) : FailProblems(problems, consequence);
}

int ExitCodeOf(v1::JobPhase phase) {
  switch (phase) {
    case v1::JOB_PHASE_SUCCEEDED:
      return kExitOk;
    case v1::JOB_PHASE_CANCELLED:
      return kExitJobCancelled;
    case v1::JOB_PHASE_FAILED:
      return kExitJobFailed;
    default:
      return kExitJobNotFinished;
  }
}

bool PrintStdout(const std::string& text) { return WriteStandardOutput(text); }

void ExitOnInterrupt() {
  std::signal(SIGINT, [](int) { _exit(kExitInterrupted); });
}

}  // namespace mega::cli
