// megactl events: what happened to a job, in order, without gaps.
#include <unistd.h>

#include <memory>

#include "cli/commands/command.h"
#include "cli/commands/event_line.h"
#include "cli/commands/follow.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

struct Options {
  std::string handle;
  bool follow = false;
  Output output = Output::kTable;
};

int Events(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const absl::StatusOr<v1::Job> job = client->GetJob(options.handle);
  if (!job.ok()) return Fail(job.status());

  const Palette palette = PaletteFor(STDOUT_FILENO, shell.color);
  v1::WatchEventsRequest request;
  request.set_name(job->name());
  request.set_follow(options.follow);
  const absl::Status status =
      Follow<v1::JobEvent>([&] { return client->WatchEvents(request); },
                           [&](const v1::JobEvent& event) {
                             request.set_from_revision(event.revision());
                             return PrintStdout(StreamedMessage(event, options.output, [&] {
                               return FormatTime(event.time()) + "  " + EventLine(event, palette);
                             }));
                           },
                           options.follow);
  return status.ok() ? kExitOk : Fail(status);
}

}  // namespace

void AddEvents(Command program, const Shell& shell) {
  Command command =
      program.AddCommand("events", "Show what happened to a job", "megactl events -f shakespeare");
  auto options = std::make_shared<Options>();
  AddJob(command, options->handle).Required();
  command.AddFlag("-f,--follow", options->follow, "Go on until the job ends");
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, options] { return Events(shell, *options); });
}

}  // namespace mega::cli
