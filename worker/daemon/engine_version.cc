#include "worker/daemon/engine_version.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "nlohmann/json.hpp"
#include "worker/daemon/process.h"

namespace mega::daemon {
namespace {

constexpr size_t kMaxOutput = 1 << 20;

// Until the end of the pipe, the limit or the deadline.
std::string ReadUntil(int fd, absl::Time deadline) {
  std::string text;
  char buffer[4096];
  while (text.size() < kMaxOutput) {
    pollfd readable{fd, POLLIN, 0};
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left <= 0 || poll(&readable, 1, static_cast<int>(left)) <= 0) break;
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace

std::vector<std::string> EngineEnvironment(int64_t threads) {
  std::vector<std::string> environment;
  for (const char* name : {"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR",
                           "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = getenv(name)) environment.push_back(fmt::format("{}={}", name, value));
  }
  environment.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
  // Ranks outnumber cores in small clusters: a spinning team costs its neighbours up to 13 times.
  environment.push_back("OMP_WAIT_POLICY=passive");
  environment.push_back("GOMP_SPINCOUNT=1000");
  return environment;
}

absl::StatusOr<EngineVersion> AskEngineVersion(const std::string& engine, absl::Duration timeout) {
  MEGA_ASSIGN_OR_RETURN(const std::unique_ptr<Process> process,
                        Process::Fork({.argv = {engine, "version", "-o", "json"},
                                       .environment = EngineEnvironment(1),
                                       .directory = "/"}));
  MEGA_RETURN_IF_ERROR(Annotate(process->Release(), "--engine"));
  const UniqueFd out = process->TakeStdout();
  const std::string text = ReadUntil(out.get(), absl::Now() + timeout);
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto version = json.is_object() ? json.find("version") : json.end();
  const auto libraries = json.is_object() ? json.find("numeric_libraries") : json.end();
  if (version == json.end() || !version->is_string() || libraries == json.end() ||
      !libraries->is_array()) {
    return FailedPrecondition(
        "`{} version -o json` did not answer with version and numeric_libraries within {}; is "
        "--engine a mega-engine of this release?",
        engine, absl::FormatDuration(timeout));
  }
  EngineVersion answer{.version = version->get<std::string>()};
  for (const auto& library : *libraries) {
    if (library.is_string()) answer.numeric_libraries.push_back(library.get<std::string>());
  }
  return answer;
}

}  // namespace mega::daemon
