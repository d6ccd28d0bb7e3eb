// megactl pause, resume: a job gives its devices back, and takes them again.
#include <memory>

#include "cli/commands/command.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

struct Options {
  std::string handle;
  Output output = Output::kTable;
};

using Call = absl::StatusOr<v1::Job> (Client::*)(const std::string& handle);

std::string Paused(const v1::Job& job) {
  const std::string name = Printable(job.metadata().name());
  if (job.phase() == v1::JOB_PHASE_PAUSED) {
    return fmt::format("job {} is paused and holds no device; megactl resume {} goes on\n", name,
                       Printable(job.uid()));
  }
  return fmt::format("job {} saves, then gives its devices back; megactl resume {} goes on\n", name,
                     Printable(job.uid()));
}

std::string Resumed(const v1::Job& job) {
  return fmt::format("job {} is {}: {}\n", Printable(job.metadata().name()), PhaseName(job.phase()),
                     Printable(job.reason()));
}

int Ask(const Shell& shell, const Options& options, Call call,
        std::string (*text)(const v1::Job& job)) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  return AnswerJob(((*client).*call)(options.handle), options.output, text);
}

void Add(Command program, const Shell& shell, const char* name, const char* what,
         const char* example, Call call, std::string (*text)(const v1::Job& job)) {
  Command command = program.AddCommand(name, what, example);
  auto options = std::make_shared<Options>();
  AddJob(command, options->handle).Required();
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, options, call, text] { return Ask(shell, *options, call, text); });
}

}  // namespace

void AddPause(Command program, const Shell& shell) {
  Add(program, shell, "pause", "Save a job and give its devices back", "megactl pause shakespeare",
      &Client::PauseJob, Paused);
}

void AddResume(Command program, const Shell& shell) {
  Add(program, shell, "resume", "Let a paused job go on where it was", "megactl resume shakespeare",
      &Client::ResumeJob, Resumed);
}

}  // namespace mega::cli
