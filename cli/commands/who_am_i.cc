// megactl whoami: who the coordinator takes the user for.
#include <memory>

#include "cli/commands/command.h"
#include "cli/view/json.h"

namespace mega::cli {
namespace {

int WhoAmI(const Shell& shell, Output output) {
  ExitOnInterrupt();
  absl::StatusOr<Client> client = shell.Connect();
  if (!client.ok()) return Fail(client.status());
  const absl::StatusOr<v1::WhoAmIResponse> me = client->WhoAmI();
  if (!me.ok()) return Fail(me.status());
  if (output != Output::kTable) {
    PrintStdout(output == Output::kJson ? ToJson(*me) : ToYaml(*me));
    return kExitOk;
  }
  std::string text = Printable(me->user());
  if (client->is_plain_text()) text += " (plain text: nobody is known)";
  PrintStdout(text + "\n");
  for (const auto& [name_space, role] : me->roles()) {
    PrintStdout(fmt::format("  {} in {}\n", Printable(role),
                            name_space == "*" ? "all namespaces" : Printable(name_space)));
  }
  return kExitOk;
}

}  // namespace

void AddWhoAmI(Command program, const Shell& shell) {
  Command command =
      program.AddCommand("whoami", "Show who the coordinator takes you for", "megactl whoami");
  auto output = std::make_shared<Output>(Output::kTable);
  AddOutput(command, *output, {Output::kTable, Output::kJson, Output::kYaml});
  command.OnRun([&shell, output] { return WhoAmI(shell, *output); });
}

}  // namespace mega::cli
