#include "cli/commands/sample.h"

#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "base/utf8.h"
#include "cli/client/errors.h"
#include "cli/commands/engine_process.h"
#include "cli/local/child.h"
#include "coordinator/planner/spec/data_paths.h"

namespace mega::cli {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);
constexpr size_t kLookedAtBytes = 64 << 10;
constexpr size_t kPromptBytes = 32;
constexpr size_t kSampleBytes = 64 << 10;

// A byte-level model may write what is no text.
std::string CleanText(std::string text) {
  for (size_t bad = FirstBadByte(text); bad != std::string::npos; bad = FirstBadByte(text))
    text[bad] = '?';
  return text;
}

}  // namespace

std::string PromptFromData(const v1::Data& data) {
  if (data.paths().empty() || spec::IsJsonl(data.paths(0))) return "";
  // No more of it: a corpus may be one line.
  std::string text(kLookedAtBytes, '\0');
  std::ifstream file(data.paths(0), std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  text.erase(0, text.find_first_not_of('\n'));
  std::string line = CutUtf8(text.substr(0, text.find('\n')), kPromptBytes);
  if (FirstBadByte(line) != std::string::npos) return "";
  if (line.size() == text.size() || text[line.size()] == '\n') return line;
  const size_t blank = line.rfind(' ');
  return blank == std::string::npos ? line : line.substr(0, blank);
}

absl::StatusOr<std::string> GenerateSample(const std::string& model, const std::string& prompt,
                                           const std::string& scratch,
                                           const std::function<bool()>& interrupted) {
  MEGA_ASSIGN_OR_RETURN(const std::string engine, ProgramBeside("mega-engine"));
  const std::string output = scratch + "/sample.txt", errors = scratch + "/logs/sample.log";
  std::error_code ignored;
  std::filesystem::remove(output, ignored);
  MEGA_ASSIGN_OR_RETURN(
      Child child,
      Child::Start({.program = engine,
                    .arguments = {"generate", "--model", model, "--prompt",
                                  prompt.empty() ? std::string("\n") : prompt, "-n", "200"},
                    .output = output,
                    .error_output = errors}));
  const absl::Time deadline = absl::Now() + kPatience;
  while (!child.WaitFor(absl::Milliseconds(20))) {
    if (interrupted()) return absl::CancelledError("interrupted");
    if (absl::Now() >= deadline)
      return absl::DeadlineExceededError("generating a sample took over a minute");
  }
  if (*child.Poll() != 0) {
    return Internal("mega-engine generate ended with {}: {}", DescribeWaitStatus(*child.Poll()),
                    TailOfFile(errors, 1024));
  }
  return CleanText(TailOfFile(output, kSampleBytes));
}

}  // namespace mega::cli
