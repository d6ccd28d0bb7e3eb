#include "tests/e2e/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace mega::e2e {
namespace fs = std::filesystem;

TempDir::TempDir(bool keep_on_failure) : keep_on_failure_(keep_on_failure) {
  std::string name = (fs::temp_directory_path() / "mega-e2e-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

TempDir::~TempDir() {
  if (keep_on_failure_ && ::testing::Test::HasFailure()) {
    std::fprintf(stderr, "kept for a look: %s\n", path_.c_str());
    return;
  }
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

bool Eventually(const std::function<bool()>& condition, Seconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return condition();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

Process::Process(Options options) : options_(std::move(options)) {
  std::vector<std::string> environment;
  for (char** e = environ; *e != nullptr; ++e) environment.emplace_back(*e);
  environment.insert(environment.end(), options_.environment.begin(), options_.environment.end());
  std::vector<char*> argv, envp;
  for (std::string& a : options_.argv) argv.push_back(a.data());
  for (std::string& e : environment) envp.push_back(e.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  const int out = open(options_.output.empty() ? "/dev/null" : options_.output.c_str(),
                       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(in, 0);
  dup2(out, 1);
  dup2(out, 2);
  if (!options_.directory.empty() && chdir(options_.directory.c_str()) != 0) _exit(126);
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

Process::~Process() {
  if (!Running()) return;
  kill(pid_, SIGKILL);
  Wait(Seconds(10));
}

bool Process::Running() { return !Wait(Seconds(0)).has_value(); }

void Process::Signal(int signal) {
  if (Running()) kill(pid_, signal);
}

std::optional<Process::Exit> Process::Wait(Seconds within) {
  if (exit_) return exit_;
  Eventually(
      [&] {
        int status = 0;
        const pid_t ended = waitpid(pid_, &status, WNOHANG);
        if (ended == 0) return false;
        exit_ = WIFEXITED(status) ? Exit{WEXITSTATUS(status), 0} : Exit{-1, WTERMSIG(status)};
        return true;
      },
      within);
  return exit_;
}

std::string Process::Output() const { return ReadFile(options_.output); }

Result RunProgram(std::vector<std::string> argv, Seconds within, fs::path directory) {
  TempDir dir(false);
  const fs::path output = dir.path() / "output";
  Process process({.argv = argv, .output = output, .directory = directory});
  const auto exit = process.Wait(within);
  if (!exit) {
    ADD_FAILURE() << argv[0] << " did not end in " << within.count() << " s:\n" << ReadFile(output);
    return {};
  }
  return {exit->signal != 0 ? 128 + exit->signal : exit->code, ReadFile(output)};
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteFile(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<pid_t> PidsWith(const std::string& text) {
  std::vector<pid_t> pids;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (!std::all_of(name.begin(), name.end(), ::isdigit)) continue;
    std::string line = ReadFile(entry.path() / "cmdline");
    std::replace(line.begin(), line.end(), '\0', ' ');
    if (line.find(text) == std::string::npos) continue;
    const std::string stat = ReadFile(entry.path() / "stat");
    const size_t after = stat.rfind(") ");
    if (after != std::string::npos && stat[after + 2] != 'Z') pids.push_back(std::stoi(name));
  }
  return pids;
}

}  // namespace mega::e2e
