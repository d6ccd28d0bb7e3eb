// The offline verbs are tasks of mega-engine, which lies beside megactl.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace mega::cli {

// Path of a program in megactl's own folder.
absl::StatusOr<std::string> ProgramBeside(const std::string& name);

// Replaces this process by `mega-engine <arguments>`; returns only an exit code of failure.
int ExecEngine(const std::vector<std::string>& arguments);

}  // namespace mega::cli
