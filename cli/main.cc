// megactl: what people type.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/command_line/command_line.h"
#include "base/dns_name.h"
#include "base/grpc_log.h"
#include "cli/commands/command.h"

namespace mega::cli {
namespace {

int Main(int argc, char** argv) {
  LogGrpcAtDebug();
  Shell shell;
  CLI::App app{
      "Trains large language models on a cluster from one job file\n"
      "megactl run deploy/examples/shakespeare.yaml"};
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(kExitCodeHelp);
  app.add_option("--coordinator", shell.coordinator,
                 "Coordinator to talk to (also MEGACTL_COORDINATOR, ~/.config/megactl/config.yaml; "
                 "default 127.0.0.1:7070)")
      ->type_name("HOST:PORT");
  app.add_option("-n,--namespace", shell.name_space, "Namespace of the jobs")
      ->check(CLI::Validator(
          [](std::string& name) -> std::string {
            if (IsDnsLabel(name)) return "";
            return fmt::format("'{}' is not a namespace, which is {}", name, kDnsLabelRule);
          },
          ""))
      ->type_name("NAME");
  app.add_option_function<std::string>(
         "--color",
         [&shell](const std::string& when) {
           shell.color = when == "always"  ? ColorMode::kAlways
                         : when == "never" ? ColorMode::kNever
                                           : ColorMode::kAuto;
         },
         "auto (on a terminal, unless NO_COLOR), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");

  AddRun(app, shell);
  AddSubmit(app, shell);
  AddGet(app, shell);
  AddDescribe(app, shell);
  AddNodes(app, shell);
  AddLogs(app, shell);
  AddEvents(app, shell);
  AddSteps(app, shell);
  AddCancel(app, shell);
  AddPause(app, shell);
  AddResume(app, shell);
  AddRestart(app, shell);
  AddScale(app, shell);
  AddQueue(app, shell);
  AddNamespaces(app, shell);
  AddCordon(app, shell);
  AddWait(app, shell);
  AddPlan(app, shell);
  AddGenerate(app, shell);
  AddCheckpoints(app, shell);
  AddData(app, shell);
  AddVersion(app, shell);
  AddCompletion(app, shell);
  AddSchema(app, shell);

  if (const auto code = ParseArguments(app, argc, argv)) return *code;
  return shell.exit_code;
}

}  // namespace
}  // namespace mega::cli

int main(int argc, char** argv) { return mega::cli::Main(argc, argv); }
