// megactl data: datasets, by mega-engine.
#include "cli/commands/command.h"
#include "cli/commands/engine_process.h"

namespace mega::cli {

void AddData(Command program) {
  AddEngineCommand(program, "data", "Build datasets from text or JSONL",
                   "megactl data build --out corpus book.txt more.jsonl");
}

}  // namespace mega::cli
