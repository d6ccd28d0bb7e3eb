// megactl schema: the JSON Schema of the job file, for editors.
#include "cli/commands/command.h"
#include "coordinator/planner/spec/json_schema.h"

namespace mega::cli {

void AddSchema(CLI::App& app, Shell& shell) {
  CLI::App* command = AddCommand(app, "schema", "Print the JSON Schema of the job file",
                                 "megactl schema > job.schema.json");
  command->callback([&shell] {
    PrintStdout(spec::JsonSchema().dump(2) + "\n");
    shell.exit_code = kExitOk;
  });
}

}  // namespace mega::cli
