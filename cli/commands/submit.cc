// megactl submit: a job file to the coordinator. Safe to repeat with one --request-id.
#include <fstream>
#include <memory>

#include "cli/commands/command.h"
#include "cli/view/json.h"
#include "cli/view/words.h"
#include "nlohmann/json.hpp"

namespace mega::cli {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> overrides;
  std::string request_id;
  bool dry_run = false;
  bool quiet = false;
  Output output = Output::kTable;
};

// A random UUID of the kernel's making.
absl::StatusOr<std::string> RandomUuid() {
  std::ifstream file("/proc/sys/kernel/random/uuid");
  std::string uuid(36, '\0');
  if (!file.read(uuid.data(), 36))
    return Internal("/proc/sys/kernel/random/uuid gave no UUID; pass --request-id");
  return uuid;
}

int Submit(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const std::string consequence =
      options.dry_run ? "the job is not valid" : "nothing was submitted";
  const LoadedJob loaded =
      LoadJob(options.file, options.overrides, client->target().name_space, consequence);
  if (loaded.exit_code != kExitOk) return loaded.exit_code;

  v1::SubmitJobRequest request;
  request.set_request_id(options.request_id);
  if (options.request_id.empty()) {
    absl::StatusOr<std::string> uuid = RandomUuid();
    if (!uuid.ok()) return Fail(uuid.status());
    request.set_request_id(*uuid);
  }
  *request.mutable_metadata() = loaded.job.metadata;
  *request.mutable_spec() = loaded.job.spec;
  request.set_validate_only(options.dry_run);
  const absl::StatusOr<v1::Job> job = client->SubmitJob(request);
  if (!job.ok()) return FailRefused(job.status(), loaded, consequence);

  const std::string name = PrintableLine(job->metadata().name());
  const std::string uid = PrintableLine(job->uid());
  if (options.quiet) {
    if (!options.dry_run) PrintStdout(uid + "\n");
  } else if (options.output == Output::kName) {
    PrintStdout(name + "\n");
  } else if (options.output == Output::kJson || options.output == Output::kYaml) {
    nlohmann::ordered_json json = JsonOf(*job);
    if (options.dry_run) json.erase("uid");  // no job, no id
    PrintStdout(options.output == Output::kJson ? ToJson(json) : ToYaml(json));
  } else if (options.dry_run) {
    PrintStdout(
        fmt::format("{} is valid: the coordinator would take job {}\n", loaded.source, name));
  } else {
    PrintStdout(
        fmt::format("job {} submitted, id {}, {}\nnext: megactl steps -f {}  ·  megactl "
                    "describe {}  ·  megactl wait {}\n",
                    name, uid, PhaseName(job->phase()), uid, uid, uid));
  }
  return kExitOk;
}

}  // namespace

void AddSubmit(Command program, const Shell& shell) {
  Command command = program.AddCommand("submit", "Submit a job file",
                                       "megactl submit job.yaml --set training.steps=1000");
  auto options = std::make_shared<Options>();
  command.AddOption("file", options->file, "Job file, - for standard input").Required();
  AddOverrides(command, options->overrides);
  command
      .AddOption("--request-id", options->request_id,
                 "The same id gives the same job, however often it is sent")
      .Check([](const std::string& id) -> std::string {
        if (PrintableLine(id) == id) return "";
        return fmt::format("'{}' holds a control character; give a UUID of your choice",
                           PrintableLine(id));
      });
  command.AddFlag(
      "--dry-run", options->dry_run,
      "Check everything, store nothing; with -o json the job that would be, which has no uid");
  command.AddFlag("-q,--quiet", options->quiet, "Print the job's id alone");
  AddOutput(command, options->output,
            {Output::kTable, Output::kJson, Output::kYaml, Output::kName});
  command.OnRun([&shell, options] { return Submit(shell, *options); });
}

}  // namespace mega::cli
