// megactl checkpoints list|describe|verify|save|pin|unpin|delete: the committed checkpoints of a
// job, and any on a disk.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_count.h"
#include "cli/commands/checkpoint_view.h"
#include "cli/commands/command.h"
#include "cli/commands/engine_process.h"
#include "cli/view/json.h"
#include "cli/view/table.h"
#include "cli/view/words.h"
#include "manifest/manifest_file.h"

namespace mega::cli {
namespace {

struct Options {
  std::string handle;
  int64_t step = 0;
  bool force = false;
  Output output = Output::kTable;
};

int List(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const absl::StatusOr<v1::Job> job = client->GetJob(options.handle);
  if (!job.ok()) return Fail(job.status());
  if (options.output != Output::kTable) {
    for (const v1::Manifest& manifest : job->checkpoints())
      PrintStdout(StreamedMessage(manifest, options.output,
                                  [&] { return Printable(manifest.directory()); }));
    return kExitOk;
  }
  if (job->checkpoints().empty()) {
    std::fprintf(stderr, "job %s has no checkpoint yet (checkpoint.interval_steps is %lld)\n",
                 Printable(job->metadata().name()).c_str(),
                 static_cast<long long>(job->resolved_spec().checkpoint().interval_steps()));
    return kExitOk;
  }
  Table table({"STEP", "SIZE", "CREATED", "VALIDATION LOSS", "PINNED", "FOLDER"});
  for (const v1::Manifest& manifest : job->checkpoints()) {
    table.AddRow({fmt::format("{}", manifest.step()),
                  FormatBytes(static_cast<double>(manifest.total_bytes())),
                  FormatTime(manifest.create_time()),
                  manifest.state().has_validation_loss()
                      ? fmt::format("{:.4f}", manifest.state().validation_loss())
                      : "-",
                  manifest.pinned() ? "yes" : "-", Printable(manifest.directory())});
  }
  PrintStdout(table.ToString());
  return kExitOk;
}

int Save(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  return AnswerJob(client->SaveCheckpoint(options.handle), options.output, [](const v1::Job& job) {
    return fmt::format(
        "job {} saves after the step that it is in; megactl events -f {} tells when it is "
        "committed\n",
        Printable(job.metadata().name()), Printable(job.uid()));
  });
}

int Pin(const Shell& shell, const Options& options, bool pinned) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const auto manifest = client->PinCheckpoint(options.handle, options.step, pinned);
  if (!manifest.ok()) return Fail(manifest.status());
  if (options.output == Output::kJson) {
    PrintStdout(ToJson(*manifest));
  } else if (options.output == Output::kYaml) {
    PrintStdout(ToYaml(*manifest));
  } else {
    PrintStdout(fmt::format(
        "the checkpoint of step {} is {}: {}\n", manifest->step(),
        manifest->pinned() ? "pinned" : "not pinned",
        manifest->pinned() ? "it stays until it is unpinned" : "checkpoint.keep counts it again"));
  }
  return kExitOk;
}

int Delete(const Shell& shell, const Options& options) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const auto job = client->DeleteCheckpoint(options.handle, options.step, options.force);
  return AnswerJob(job, options.output, [&](const v1::Job& left) {
    return fmt::format("the checkpoint of step {} is deleted; job {} has {} left\n", options.step,
                       Printable(left.metadata().name()), left.checkpoints_size());
  });
}

// Which checkpoint: a folder, or a job and a step.
struct Which {
  std::string target;
  std::optional<int64_t> step;
  Output output = Output::kTable;
};

struct Found {
  std::string folder;
  v1::Job job;            // if it was asked for by job and step
  v1::Manifest manifest;  // as the job shows it; likewise
};

absl::StatusOr<Found> Find(const Shell& shell, const Which& which) {
  Found found;
  if (!which.step) {
    std::error_code error;
    found.folder = std::filesystem::absolute(which.target, error).lexically_normal().string();
    if (!error && std::filesystem::is_directory(found.folder, error)) return found;
    return NotFound("{} is no folder here; name the folder of a checkpoint, or a job and a step",
                    which.target);
  }
  MEGA_ASSIGN_OR_RETURN(Client client, shell.Connect());
  MEGA_ASSIGN_OR_RETURN(found.job, client.GetJob(which.target));
  std::string steps;
  for (const v1::Manifest& manifest : found.job.checkpoints()) {
    steps += fmt::format(" {}", manifest.step());
    if (manifest.step() == *which.step) found.manifest = manifest;
  }
  found.folder = found.manifest.directory();
  if (!found.folder.empty()) return found;
  return NotFound("job {} has no checkpoint of step {}; it has{}",
                  Printable(found.job.metadata().name()), *which.step,
                  steps.empty() ? " none" : " those of steps" + steps);
}

int Describe(const Shell& shell, const Which& which) {
  ExitOnInterrupt();
  absl::StatusOr<Found> found = Find(shell, which);
  if (!found.ok()) return Fail(found.status());
  absl::StatusOr<v1::Manifest> on_disk = manifest::ReadManifest(found->folder);
  if (!which.step) {
    if (absl::IsNotFound(on_disk.status())) {
      return Fail(
          NotFound("{} holds no {}: it is no checkpoint, or one whose save was never "
                   "completed",
                   found->folder, manifest::kManifestName));
    }
    if (!on_disk.ok()) return Fail(on_disk.status());
    found->manifest = *std::move(on_disk);
  } else if (on_disk.ok() && on_disk->step() == found->manifest.step() &&
             on_disk->epoch() == found->manifest.epoch()) {
    found->manifest.mutable_tensors()->Swap(on_disk->mutable_tensors());
  }
  if (which.output == Output::kJson) {
    PrintStdout(ToJson(found->manifest));
  } else if (which.output == Output::kYaml) {
    PrintStdout(ToYaml(found->manifest));
  } else {
    PrintStdout(CheckpointText(found->manifest, which.step ? &found->job : nullptr));
  }
  return kExitOk;
}

int Verify(const Shell& shell, const Which& which) {
  ExitOnInterrupt();
  const absl::StatusOr<Found> found = Find(shell, which);
  if (!found.ok()) return Fail(found.status());
  // The engine knows no YAML; its JSON is some.
  std::vector<std::string> words = {"checkpoint", "verify", "-o",
                                    which.output == Output::kTable ? "text" : "json"};
  if (which.step) {  // else nobody says which one should lie there
    for (const auto& [option, value] : {std::pair("--step", found->manifest.step()),
                                        std::pair("--epoch", found->manifest.epoch())}) {
      words.insert(words.end(), {option, fmt::format("{}", value)});
    }
  }
  words.insert(words.end(), {"--", found->folder});
  return BecomeEngine(words);
}

Command AddFolderCommand(Command checkpoints, const std::shared_ptr<Which>& which,
                         const std::string& name, const std::string& help,
                         const std::string& example, const std::vector<Output>& outputs) {
  Command command = checkpoints.AddCommand(name, help, example);
  command.AddOption("target", which->target, "Folder of a checkpoint, or a job").Required();
  command.AddOption("step", which->step, "Step of the job's checkpoint").AtLeast(0);
  AddOutput(command, which->output, outputs);
  return command;
}

// A word more than the job: which of its checkpoints.
Command AddStepCommand(Command checkpoints, const std::shared_ptr<Options>& options,
                       const std::string& name, const std::string& help,
                       const std::string& example) {
  Command command = checkpoints.AddCommand(name, help, example);
  AddJob(command, options->handle).Required();
  command.AddOption("step", options->step, "Step of the checkpoint").Required().AtLeast(0);
  AddOutput(command, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  return command;
}

}  // namespace

void AddCheckpoints(Command program, const Shell& shell) {
  Command command = program.AddCommand("checkpoints", "Checkpoints of a job",
                                       "megactl checkpoints list shakespeare");
  command.RequireCommand();
  auto options = std::make_shared<Options>();
  Command list = command.AddCommand("list", "List the committed checkpoints, oldest first",
                                    "megactl checkpoints list shakespeare");
  AddJob(list, options->handle).Required();
  AddOutput(list, options->output, {Output::kTable, Output::kJson, Output::kYaml, Output::kName});
  list.OnRun([&shell, options] { return List(shell, *options); });

  auto which = std::make_shared<Which>();
  AddFolderCommand(command, which, "describe",
                   "Tell what a checkpoint is: when, by whom, how large",
                   "megactl checkpoints describe shakespeare 200",
                   {Output::kTable, Output::kJson, Output::kYaml})
      .OnRun([&shell, which] { return Describe(shell, *which); });
  AddFolderCommand(command, which, "verify",
                   "Read all of a checkpoint and compare it with its manifest\n"
                   "Tells all damage there is, and exits with 1 if there is any.",
                   "megactl checkpoints verify shakespeare 200",
                   {Output::kTable, Output::kJson, Output::kYaml})
      .OnRun([&shell, which] { return Verify(shell, *which); });

  Command save = command.AddCommand("save", "Save a running job now, and let it train on",
                                    "megactl checkpoints save shakespeare");
  AddJob(save, options->handle).Required();
  AddOutput(save, options->output, {Output::kTable, Output::kJson, Output::kYaml});
  save.OnRun([&shell, options] { return Save(shell, *options); });

  AddStepCommand(command, options, "pin", "Keep a checkpoint, whatever checkpoint.keep says",
                 "megactl checkpoints pin shakespeare 200")
      .OnRun([&shell, options] { return Pin(shell, *options, true); });
  AddStepCommand(command, options, "unpin", "Let checkpoint.keep count a checkpoint again",
                 "megactl checkpoints unpin shakespeare 200")
      .OnRun([&shell, options] { return Pin(shell, *options, false); });

  Command remove =
      AddStepCommand(command, options, "delete", "Delete a checkpoint and the files of its folder",
                     "megactl checkpoints delete shakespeare 200");
  remove.AddFlag("--force", options->force, "The newest or a pinned one too");
  remove.OnRun([&shell, options] { return Delete(shell, *options); });
}

}  // namespace mega::cli
