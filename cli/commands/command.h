// What all commands share: global options, a way to the coordinator, how failure is told.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "base/status.h"
#include "cli/client/client.h"
#include "cli/client/exit_code.h"
#include "cli/spec/job_yaml.h"
#include "cli/view/terminal.h"

namespace mega::cli {

struct Shell {
  std::string coordinator;  // --coordinator; empty: not given
  std::string name_space;   // -n; empty: not given
  ColorMode color = ColorMode::kAuto;
  int exit_code = kExitOk;  // what the command that ran returned

  absl::StatusOr<Target> FindTarget() const;
  absl::StatusOr<Client> Connect() const;
};

enum class Output { kTable, kWide, kJson, kYaml, kName };

// Each command: declares itself in `app`; when parsed, runs and leaves its exit code in `shell`.
// Both outlive the parse. The implementations are in the file of the command's name.
void AddRun(CLI::App& app, Shell& shell);
void AddSubmit(CLI::App& app, Shell& shell);
void AddGet(CLI::App& app, Shell& shell);
void AddDescribe(CLI::App& app, Shell& shell);
void AddNodes(CLI::App& app, Shell& shell);
void AddLogs(CLI::App& app, Shell& shell);
void AddEvents(CLI::App& app, Shell& shell);
void AddSteps(CLI::App& app, Shell& shell);
void AddCancel(CLI::App& app, Shell& shell);
void AddPause(CLI::App& app, Shell& shell);
void AddResume(CLI::App& app, Shell& shell);
void AddRestart(CLI::App& app, Shell& shell);
void AddScale(CLI::App& app, Shell& shell);
void AddQueue(CLI::App& app, Shell& shell);
void AddNamespaces(CLI::App& app, Shell& shell);
void AddCordon(CLI::App& app, Shell& shell);  // and uncordon, drain
void AddWait(CLI::App& app, Shell& shell);
void AddPlan(CLI::App& app, Shell& shell);
void AddGenerate(CLI::App& app, Shell& shell);
void AddCheckpoints(CLI::App& app, Shell& shell);
void AddData(CLI::App& app, Shell& shell);
void AddVersion(CLI::App& app, Shell& shell);
void AddCompletion(CLI::App& app, Shell& shell);
void AddSchema(CLI::App& app, Shell& shell);

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

// A subcommand whose help begins with `example`.
CLI::App* AddCommand(CLI::App& app, const std::string& name, const std::string& help,
                     const std::string& example);
// -o with the words of `allowed`.
void AddOutput(CLI::App& command, Output& output, const std::vector<Output>& allowed);
// -o for steps and events: a line, or a JSON message, each.
void AddLineOutput(CLI::App& command, Output& output);

// "megactl: <message>" on stderr; returns the exit code of the status.
int Fail(const absl::Status& status);
// The problems of a job file, one a line, and what was therefore not done.
int FailProblems(const std::vector<Problem>& problems, const std::string& consequence);

// Reads, parses and checks a job file; prints its problems. `exit_code` is set when the job cannot
// be used.
struct LoadedJob {
  JobFile job;
  std::string source;
  int exit_code = kExitOk;
};
LoadedJob LoadJob(const std::string& path, const std::vector<std::string>& overrides,
                  const std::string& name_space, const std::string& consequence);
// The coordinator's refusal of a job, with the lines of the job file it speaks about.
int FailRefused(const absl::Status& status, const LoadedJob& loaded,
                const std::string& consequence);

// The answer to a request about one job, as -o wants it: `text` says it to people. Returns the exit
// code.
int AnswerJob(const absl::StatusOr<v1::Job>& job, Output output,
              const std::function<std::string(const v1::Job&)>& text);

// How `wait` reports a phase.
int ExitCodeOf(v1::JobPhase phase);

void PrintStdout(const std::string& text);  // and flushes

// From now on Ctrl-C ends the process with exit code 130 at once.
void ExitOnInterrupt();

}  // namespace mega::cli
