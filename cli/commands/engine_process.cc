#include "cli/commands/engine_process.h"

#include <unistd.h>

#include <filesystem>

#include "cli/commands/command.h"

namespace mega::cli {

absl::StatusOr<std::string> ProgramBeside(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Internal("/proc/self/exe: {}", error.message());
  const std::filesystem::path program = self.parent_path() / name;
  if (access(program.c_str(), X_OK) != 0) {
    return Internal("{} is missing beside megactl; build it: ninja -C BUILD {}", program.string(),
                    name);
  }
  return program.string();
}

int BecomeEngine(const std::vector<std::string>& words) {
  const absl::StatusOr<std::string> program = ProgramBeside("mega-engine");
  if (!program.ok()) return Fail(program.status());
  std::vector<char*> argv = {const_cast<char*>(program->c_str())};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(program->c_str(), argv.data());
  return Fail(ErrnoStatus(errno, *program));
}

void AddEngineCommand(Command program, const std::string& name, const std::string& help,
                      const std::string& example) {
  program.AddCommand(name, help, example).PassOn([name](std::vector<std::string> words) {
    words.insert(words.begin(), name);
    return BecomeEngine(words);
  });
}

}  // namespace mega::cli
