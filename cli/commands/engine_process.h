// The offline verbs are tasks of mega-engine, which lies beside megactl.
#pragma once

#include <string>
#include <vector>

#include "base/command_line/command_line.h"
#include "base/status.h"

namespace mega::cli {

// Path of a program in megactl's own folder.
absl::StatusOr<std::string> ProgramBeside(const std::string& name);

// mega-engine with these words takes this process's place. Returns only an exit code of failure.
int BecomeEngine(const std::vector<std::string>& words);

// A command that mega-engine carries out: its tasks and options, --help included, are that
// program's, which takes this process's place.
void AddEngineCommand(Command program, const std::string& name, const std::string& help,
                      const std::string& example);

}  // namespace mega::cli
