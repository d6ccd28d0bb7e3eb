// megactl get: one job, or the jobs of a namespace.
#include <memory>

#include "absl/time/clock.h"
#include "cli/commands/watch.h"
#include "cli/view/json.h"
#include "cli/view/table.h"
#include "cli/view/words.h"

namespace mega::cli {
namespace {

struct Options {
  std::string handle;
  bool all_namespaces = false;
  bool no_headers = false;
  bool watch = false;
  Output output = Output::kTable;
};

std::string Progress(const v1::Job& job) {
  const int64_t steps = job.attempts().empty() ? job.resolved_spec().training().steps()
                                               : job.attempts().rbegin()->plan().steps();
  return steps > 0 ? fmt::format("{}/{}", job.last_step(), steps)
                   : fmt::format("{}", job.last_step());
}

std::string Jobs(const google::protobuf::RepeatedPtrField<v1::Job>& jobs, bool wide,
                 bool with_header) {
  std::vector<std::string> header = {"NAME", "ID", "PHASE", "STEP", "LOSS", "RESTARTS", "AGE"};
  if (wide) header.insert(header.end(), {"NAMESPACE", "QUEUE", "REASON"});
  Table table(header);
  const absl::Time now = absl::Now();
  for (const v1::Job& job : jobs) {
    std::vector<std::string> row = {
        Printable(job.metadata().name()),
        Printable(job.uid()),
        PhaseName(job.phase()),
        Progress(job),
        job.last_step() > 0 ? fmt::format("{:.4f}", job.last_loss()) : "-",
        fmt::format("{}", job.restarts()),
        FormatAge(job.create_time(), job.has_create_time(), now)};
    if (wide) {
      const std::string queue =
          job.queue_position() > 0 ? fmt::format("{}", job.queue_position()) : "-";
      row.insert(row.end(),
                 {Printable(job.metadata().namespace_()), queue, Printable(job.reason())});
    }
    table.AddRow(std::move(row));
  }
  return table.ToString(with_header);
}

absl::StatusOr<View> Look(Client& client, const Options& options) {
  v1::ListJobsResponse jobs;
  const bool is_one = !options.handle.empty();
  if (is_one) {
    MEGA_ASSIGN_OR_RETURN(*jobs.add_jobs(), client.GetJob(options.handle));
  } else {
    std::string name_space = client.target().name_space;
    if (options.all_namespaces) name_space = "-";
    if (name_space.empty()) name_space = "default";
    MEGA_ASSIGN_OR_RETURN(jobs, client.ListJobs("namespaces/" + name_space));
  }
  View view{.out = "", .note = "", .is_final = is_one && IsFinal(jobs.jobs(0).phase())};
  const google::protobuf::Message* message = &jobs;
  if (is_one) message = &jobs.jobs(0);
  switch (options.output) {
    case Output::kJson:
    case Output::kYaml:
      view.out = MessageView(*message, options.output, options.watch);
      break;
    case Output::kName:
      for (const v1::Job& job : jobs.jobs()) view.out += Printable(job.metadata().name()) + "\n";
      break;
    case Output::kTable:
    case Output::kWide:
      if (jobs.jobs().empty()) {
        view.note = "no jobs; megactl submit JOB.yaml makes one, -A shows all namespaces";
        break;
      }
      view.out = Jobs(jobs.jobs(), options.output == Output::kWide, !options.no_headers);
      break;
  }
  return view;
}

int Get(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  return Show(options.watch, [&] { return Look(*client, options); });
}

}  // namespace

void AddGet(Command program, const Shell& shell) {
  Command command =
      program.AddCommand("get", "Show a job, or list jobs", "megactl get shakespeare -o json");
  command.Alias("ls");
  command.Alias("jobs");
  auto options = std::make_shared<Options>();
  AddJob(command, options->handle);
  command.AddFlag("-A,--all-namespaces", options->all_namespaces, "Jobs of every namespace");
  AddWatch(command, options->watch);
  command.AddFlag("--no-headers", options->no_headers, "Rows alone");
  AddOutput(command, options->output,
            {Output::kTable, Output::kWide, Output::kJson, Output::kYaml, Output::kName});
  command.OnRun([&shell, options] { return Get(shell, *options); });
}

}  // namespace mega::cli
