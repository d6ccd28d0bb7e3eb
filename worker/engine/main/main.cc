// mega-engine: one binary, several tasks. The worker starts `train`, one process a rank; megactl
// starts the offline ones.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/command_line/command_line.h"
#include "base/grpc_log.h"
#include "base/log.h"
#include "base/version.h"
#include "kernels/device/device.h"
#include "worker/engine/main/data_task.h"
#include "worker/engine/main/generate_task.h"
#include "worker/engine/main/train.h"

namespace mega::engine {
namespace {

void AddGenerateOptions(CLI::App& command, GenerateOptions& options) {
  command.add_option("--model", options.model, "Mega checkpoint or Hugging Face folder")
      ->required();
  command.add_option("--prompt", options.prompts, "Text to continue; may be repeated");
  command.add_option("--ids", options.ids, "Token ids to continue: 1,2,3")->delimiter(',');
  command.add_option("-n,--max-new-tokens", options.max_new_tokens)
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  command.add_flag("--greedy", options.greedy, "Always the likeliest token");
  inference::SamplingOptions& sampling = options.sampling;
  command.add_option("--temperature", sampling.temperature)
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "0: all")->check(AtLeast(0));
  command.add_option("--top-p", sampling.top_p)->check(CLI::Range(0.0, 1.0));
  command.add_option("--min-p", sampling.min_p)->check(CLI::Range(0.0, 1.0));
  command.add_option("--repetition-penalty", sampling.repetition_penalty)
      ->check(CLI::Range(0.01, 100.0));
  command.add_option("--seed", sampling.seed);
  command.add_option("--threads", options.threads, "0: all cores")->check(CLI::Range(0, 4096));
  command.add_option("-o,--output", options.output)->check(CLI::IsMember({"text", "json"}));
}

void AddDataBuildOptions(CLI::App& command, DataOptions& options) {
  command.add_option("files", options.files, "Text or JSONL files")->required();
  command.add_option("--out", options.out, "Prefix of the .bin and .idx to write")->required();
  command.add_option("--tokenizer", options.tokenizer)->capture_default_str();
}

int Main(int argc, char** argv) {
  CLI::App app{
      "Example: mega-engine generate --model CHECKPOINT --prompt 'To be' -n 100\n"
      "The trainer process of Mega. People use megactl, which runs it."};
  app.require_subcommand(1);
  log::Level log_level = log::Level::kInfo;
  AddLogLevel(app, log_level);

  TrainerLink::Options train;
  int64_t attempt = 0, epoch = 0, rank = 0;
  std::string job;
  CLI::App* train_command = app.add_subcommand("train", "A rank of a job (started by mega-worker)");
  train_command->add_option("--socket", train.socket, "Unix socket of the worker")->required();
  train_command->add_option("--job", job, "uid of the job")->required();
  train_command->add_option("--attempt", attempt)->required()->check(AtLeast(0));
  train_command->add_option("--epoch", epoch)->required()->check(AtLeast(0));
  train_command->add_option("--rank", rank)->required()->check(AtLeast(0));

  GenerateOptions generate;
  CLI::App* generate_command = app.add_subcommand("generate", "Text from a model");
  AddGenerateOptions(*generate_command, generate);

  DataOptions data;
  CLI::App* data_command = app.add_subcommand("data", "Datasets");
  data_command->require_subcommand(1);
  CLI::App* build_command = data_command->add_subcommand("build", "Text or JSONL into .bin/.idx");
  AddDataBuildOptions(*build_command, data);

  std::string output = "text";
  CLI::App* version_command = app.add_subcommand("version", "Version and numeric libraries");
  version_command->add_option("-o,--output", output)->check(CLI::IsMember({"text", "json"}));

  if (const auto code = ParseArguments(app, argc, argv)) return *code;
  LogGrpcAtDebug();
  if (*train_command) {
    log::Init("engine/" + std::to_string(rank), log_level);
    train.rank.set_job_uid(job);
    train.rank.set_attempt(attempt);
    train.rank.set_epoch(epoch);
    train.rank.set_rank(rank);
    return Train(train);
  }
  log::Init("engine", log_level);
  if (*generate_command) return Generate(generate);
  if (*build_command) return BuildData(data);
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

int main(int argc, char** argv) { return mega::engine::Main(argc, argv); }
