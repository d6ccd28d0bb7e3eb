// megactl: what people type.
#include "base/command_line/command_line.h"
#include "base/dns_name.h"
#include "base/library_log.h"
#include "base/standard_output.h"
#include "base/tls/options.h"
#include "cli/commands/command.h"

namespace mega::cli {
namespace {

int Main(int argc, char** argv) {
  LogLibrariesAtDebug();
  Shell shell;
  Program program("megactl", "Trains large language models on a cluster from one job file",
                  "megactl run deploy/examples/shakespeare.yaml");
  program.RequireCommand();
  program.Footer(kExitCodeHelp);
  program
      .AddOption("--coordinator", shell.coordinator,
                 "Coordinator to talk to (also MEGACTL_COORDINATOR, ~/.config/megactl/config.yaml; "
                 "default 127.0.0.1:7070)")
      .TypeName("HOST:PORT");
  program.AddOption("-n,--namespace", shell.name_space, "Namespace of the jobs")
      .TypeName("NAME")
      .Check([](const std::string& name) -> std::string {
        if (IsDnsLabel(name)) return "";
        return fmt::format("'{}' is not a namespace, which is {}", name, kDnsLabelRule);
      });
  tls::AddOptions(program, shell.tls);
  program
      .AddOption(
          "--color",
          [&shell](const std::string& when) {
            shell.color = when == "always"  ? ColorMode::kAlways
                          : when == "never" ? ColorMode::kNever
                                            : ColorMode::kAuto;
          },
          "auto (on a terminal, unless NO_COLOR), always or never")
      .TypeName("WHEN")
      .OneOf({"auto", "always", "never"});

  AddRun(program, shell);
  AddSubmit(program, shell);
  AddGet(program, shell);
  AddDescribe(program, shell);
  AddGoodput(program, shell);
  AddNodes(program, shell);
  AddLogs(program, shell);
  AddEvents(program, shell);
  AddSteps(program, shell);
  AddCancel(program, shell);
  AddPause(program, shell);
  AddResume(program, shell);
  AddRestart(program, shell);
  AddScale(program, shell);
  AddQueue(program, shell);
  AddNamespaces(program, shell);
  AddCordon(program, shell);
  AddWait(program, shell);
  AddPlan(program, shell);
  AddGenerate(program);
  AddCheckpoints(program, shell);
  AddData(program);
  AddDoctor(program, shell);
  AddPki(program);
  AddWhoAmI(program, shell);
  AddVersion(program, shell);
  AddCompletion(program);
  AddSchema(program);

  return program.Parse(argc, argv).value_or(kExitOk);
}

}  // namespace
}  // namespace mega::cli

int main(int argc, char** argv) {
  return mega::WithStandardOutput("megactl", [=] { return mega::cli::Main(argc, argv); });
}
