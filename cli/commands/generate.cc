// megactl generate: text from a checkpoint, by mega-engine.
#include "cli/commands/command.h"
#include "cli/commands/engine_process.h"

namespace mega::cli {

void AddGenerate(Command program) {
  AddEngineCommand(program, "generate", "Generate text from a checkpoint",
                   "megactl generate --model FOLDER --prompt 'To be' -n 200");
}

}  // namespace mega::cli
