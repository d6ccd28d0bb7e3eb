// What all commands share: global options, a way to the coordinator, how failure is told.
#pragma once

#include <functional>
#include <string>

#include "base/command_line/command_line.h"
#include "base/status.h"
#include "base/tls/options.h"
#include "cli/client/client.h"
#include "cli/client/exit_code.h"
#include "cli/spec/job_yaml.h"
#include "cli/view/terminal.h"
#include "google/protobuf/message.h"

namespace mega::cli {

struct Shell {
  std::string coordinator;  // --coordinator; empty: not given
  std::string name_space;   // -n; empty: not given
  tls::Options tls;         // --tls-ca, --tls-cert, --tls-key, --insecure; likewise
  ColorMode color = ColorMode::kAuto;

  // Where the coordinator is, for what may not need it.
  absl::StatusOr<Target> FindTarget() const;
  absl::StatusOr<Client> Connect() const;
};

enum class Output { kTable, kWide, kJson, kYaml, kName };

// Each command: declares itself in `program`; when chosen, runs with what `shell` then holds, which
// outlives the parse. The implementations are in the file of the command's name.
void AddRun(Command program, const Shell& shell);
void AddSubmit(Command program, const Shell& shell);
void AddGet(Command program, const Shell& shell);
void AddDescribe(Command program, const Shell& shell);
void AddGoodput(Command program, const Shell& shell);
void AddDoctor(Command program, const Shell& shell);
void AddNodes(Command program, const Shell& shell);
void AddLogs(Command program, const Shell& shell);
void AddEvents(Command program, const Shell& shell);
void AddSteps(Command program, const Shell& shell);
void AddCancel(Command program, const Shell& shell);
void AddPause(Command program, const Shell& shell);
void AddResume(Command program, const Shell& shell);
void AddRestart(Command program, const Shell& shell);
void AddScale(Command program, const Shell& shell);
void AddQueue(Command program, const Shell& shell);
void AddNamespaces(Command program, const Shell& shell);
void AddCordon(Command program, const Shell& shell);  // and uncordon, drain
void AddWait(Command program, const Shell& shell);
void AddPlan(Command program, const Shell& shell);
void AddGenerate(Command program);
void AddCheckpoints(Command program, const Shell& shell);
void AddData(Command program);
void AddPki(Command program);
void AddVersion(Command program, const Shell& shell);
void AddWhoAmI(Command program, const Shell& shell);
void AddCompletion(Command program);
void AddSchema(Command program);

// The word that names a job.
Option AddJob(Command command, std::string& handle);
// --set, as often as one likes.
void AddOverrides(Command command, std::vector<std::string>& overrides);
// -o with the words of `allowed`.
void AddOutput(Command command, Output& output, const std::vector<Output>& allowed);
// One message of many as -o wants it: a JSON line, a YAML document, or what `line` says to people.
std::string StreamedMessage(const google::protobuf::Message& message, Output output,
                            const std::function<std::string()>& line);

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

// And flushes. False: it cannot be written (base/standard_output.h tells that at the end), so stop
// if more is to come.
bool PrintStdout(const std::string& text);

// From now on Ctrl-C ends the process with exit code 130 at once.
void ExitOnInterrupt();

}  // namespace mega::cli
