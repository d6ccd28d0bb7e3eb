// megactl data: datasets, by mega-engine.
#include "cli/commands/command.h"
#include "cli/commands/engine_process.h"

namespace mega::cli {

void AddData(Command program) {
  Command command = program.AddCommand("data", "Build datasets from text or JSONL",
                                       "megactl data build --out corpus book.txt more.jsonl");
  // The tasks and options are mega-engine's, its --help included.
  command.PassOn([](std::vector<std::string> words) {
    words.insert(words.begin(), "data");
    return ExecEngine(words);
  });
}

}  // namespace mega::cli
