// megactl data: datasets, by mega-engine.
#include "cli/commands/command.h"
#include "cli/commands/engine_process.h"

namespace mega::cli {

void AddData(CLI::App& app, Shell& shell) {
  CLI::App* command = AddCommand(app, "data", "Build datasets from text or JSONL",
                                 "megactl data build --out corpus book.txt more.jsonl");
  // The tasks and options are mega-engine's, its --help included.
  command->fallthrough(false);
  command->set_help_flag();
  command->prefix_command();
  command->callback([&shell, command] {
    std::vector<std::string> arguments = command->remaining();
    arguments.insert(arguments.begin(), "data");
    shell.exit_code = ExecEngine(arguments);
  });
}

}  // namespace mega::cli
