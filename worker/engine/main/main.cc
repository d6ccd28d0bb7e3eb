// mega-engine: one binary, several tasks. The worker starts `train`, one process a rank; megactl
// starts the offline ones.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/command_line/command_line.h"
#include "base/library_log.h"
#include "base/log.h"
#include "base/standard_output.h"
#include "base/version.h"
#include "kernels/device/device.h"
#include "worker/engine/main/checkpoint_task.h"
#include "worker/engine/main/data_task.h"
#include "worker/engine/main/generate_task.h"
#include "worker/engine/main/train.h"

namespace mega::engine {
namespace {

void AddGenerateOptions(Command command, GenerateOptions& options) {
  command.AddOption("--model", options.model, "Mega checkpoint or Hugging Face folder").Required();
  command.AddOption("--prompt", options.prompts, "Text to continue; may be repeated");
  command.AddOption("--ids", options.ids, "Token ids to continue: 1,2,3").Delimiter(',');
  command.AddOption("-n,--max-new-tokens", options.max_new_tokens)
      .InRange(1, int64_t{1} << 30)
      .ShowDefault();
  command.AddFlag("--greedy", options.greedy, "Always the likeliest token");
  inference::SamplingOptions& sampling = options.sampling;
  command.AddOption("--temperature", sampling.temperature).InRange(0.0, 100.0).ShowDefault();
  command.AddOption("--top-k", sampling.top_k, "0: all").AtLeast(0);
  command.AddOption("--top-p", sampling.top_p).InRange(0.0, 1.0);
  command.AddOption("--min-p", sampling.min_p).InRange(0.0, 1.0);
  command.AddOption("--repetition-penalty", sampling.repetition_penalty).InRange(0.01, 100.0);
  command.AddOption("--seed", sampling.seed);
  command.AddOption("--threads", options.threads, "0: all cores").InRange(0, 4096);
  command.AddOption("-o,--output", options.output).OneOf({"text", "json"});
}

void AddDataBuildOptions(Command command, DataOptions& options) {
  command.AddOption("files", options.files, "Text or JSONL files").Required();
  command.AddOption("--out", options.out, "Prefix of the .bin and .idx to write").Required();
  command.AddOption("--tokenizer", options.tokenizer).ShowDefault();
}

int Main(int argc, char** argv) {
  Program program("mega-engine", "The trainer process of Mega. People use megactl, which runs it.",
                  "megactl generate --model FOLDER --prompt 'To be' -n 200");
  program.RequireCommand();
  log::Level log_level = log::Level::kInfo;
  AddLogLevel(program, log_level);

  TrainerLink::Options train;
  int64_t attempt = 0, epoch = 0, rank = 0;
  std::string job;
  Command train_command = program.AddCommand(
      "train", "A rank of a job (started by mega-worker)",
      "mega-engine train --socket SOCKET --job UID --attempt 1 --epoch 1 --rank 0");
  train_command.AddOption("--socket", train.socket, "Unix socket of the worker").Required();
  train_command.AddOption("--job", job, "uid of the job").Required();
  train_command.AddOption("--attempt", attempt).Required().AtLeast(0);
  train_command.AddOption("--epoch", epoch).Required().AtLeast(0);
  train_command.AddOption("--rank", rank).Required().AtLeast(0);

  GenerateOptions generate;
  Command generate_command = program.AddCommand(
      "generate", "Text from a model", "megactl generate --model FOLDER --prompt 'To be' -n 200");
  AddGenerateOptions(generate_command, generate);

  DataOptions data;
  Command data_command =
      program.AddCommand("data", "Datasets", "megactl data build --out corpus book.txt more.jsonl");
  data_command.RequireCommand();
  Command build_command =
      data_command.AddCommand("build", "Text or JSONL into .bin/.idx",
                              "megactl data build --out corpus book.txt more.jsonl");
  AddDataBuildOptions(build_command, data);

  VerifyOptions verify;
  Command checkpoint_command = program.AddCommand("checkpoint", "Checkpoints on a disk",
                                                  "megactl checkpoints verify shakespeare 200");
  checkpoint_command.RequireCommand();
  Command verify_command = checkpoint_command.AddCommand(
      "verify", "Read all of a checkpoint and compare it with its manifest",
      "megactl checkpoints verify shakespeare 200");
  verify_command.AddOption("folder", verify.folder, "Of the checkpoint").Required();
  verify_command.AddOption("-o,--output", verify.output).OneOf({"text", "json"});
  verify_command.AddOption("--step", verify.step, "Of the checkpoint that should be there");
  verify_command.AddOption("--epoch", verify.epoch, "In which that one was saved");

  std::string output = "text";
  Command version_command =
      program.AddCommand("version", "Version and numeric libraries", "mega-engine version -o json");
  version_command.AddOption("-o,--output", output).OneOf({"text", "json"});

  if (const auto code = program.Parse(argc, argv)) return *code;
  LogLibrariesAtDebug();
  if (train_command.WasChosen()) {
    log::Init("engine/" + std::to_string(rank), log_level);
    train.rank.set_job_uid(job);
    train.rank.set_attempt(attempt);
    train.rank.set_epoch(epoch);
    train.rank.set_rank(rank);
    return Train(train);
  }
  log::Init("engine", log_level);
  if (generate_command.WasChosen()) return Generate(generate);
  if (build_command.WasChosen()) return BuildData(data);
  if (verify_command.WasChosen()) return VerifyCheckpoint(verify);
  if (output == "json") {
    const nlohmann::json version = {{"version", kVersion},
                                    {"numeric_libraries", {kernels::NumericLibraries()}}};
    std::printf("%s\n", version.dump().c_str());
  } else {
    std::printf("mega-engine %s (%s)\n", kVersion, kernels::NumericLibraries().c_str());
  }
  return 0;
}

}  // namespace
}  // namespace mega::engine

int main(int argc, char** argv) {
  return mega::WithStandardOutput("mega-engine", [=] { return mega::engine::Main(argc, argv); });
}
