// megactl generate: text from a checkpoint, by mega-engine.
#include "cli/commands/command.h"
#include "cli/commands/engine_process.h"

namespace mega::cli {

void AddGenerate(CLI::App& app, Shell& shell) {
  CLI::App* command = AddCommand(app, "generate", "Generate text from a checkpoint",
                                 "megactl generate --model FOLDER --prompt 'To be' -n 200");
  // The options are mega-engine's, its --help included.
  command->fallthrough(false);
  command->set_help_flag();
  command->prefix_command();
  command->callback([&shell, command] {
    std::vector<std::string> arguments = command->remaining();
    arguments.insert(arguments.begin(), "generate");
    shell.exit_code = ExecEngine(arguments);
  });
}

}  // namespace mega::cli
