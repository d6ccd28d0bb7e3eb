// megactl generate: text from a checkpoint, by mega-engine.
#include "cli/commands/command.h"
#include "cli/commands/engine_process.h"

namespace mega::cli {

void AddGenerate(Command program) {
  Command command = program.AddCommand("generate", "Generate text from a checkpoint",
                                       "megactl generate --model FOLDER --prompt 'To be' -n 200");
  // The options are mega-engine's, its --help included.
  command.PassOn([](std::vector<std::string> words) {
    words.insert(words.begin(), "generate");
    return ExecEngine(words);
  });
}

}  // namespace mega::cli
