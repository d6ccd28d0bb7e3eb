// megactl schema: the JSON Schema of the job file, for editors.
#include "cli/commands/command.h"
#include "coordinator/planner/spec/json_schema.h"
#include "nlohmann/json.hpp"

namespace mega::cli {

void AddSchema(Command program) {
  Command command = program.AddCommand("schema", "Print the JSON Schema of the job file",
                                       "megactl schema > job.schema.json");
  command.OnRun([] {
    PrintStdout(spec::JsonSchema().dump(2) + "\n");
    return kExitOk;
  });
}

}  // namespace mega::cli
