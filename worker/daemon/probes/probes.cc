#include "worker/daemon/probes/probes.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "worker/daemon/engine_version.h"

namespace mega::daemon {
namespace {

constexpr size_t kMostOutput = 64 << 10;
constexpr size_t kMostWatched = 16;
constexpr absl::Duration kSlice = absl::Milliseconds(100);  // to be told to stop
constexpr absl::Duration kDies = absl::Milliseconds(500);   // after SIGKILL

bool AreSame(const std::vector<v1::Finding>& a, const std::vector<v1::Finding>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const v1::Finding& x, const v1::Finding& y) {
        return x.check() == y.check() && x.severity() == y.severity() && x.message() == y.message();
      });
}

bool IsReadable(int fd, absl::Duration wait) {
  pollfd readable{fd, POLLIN, 0};
  return poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(wait))) > 0;
}

}  // namespace

Probes::Probes(Options options, const Clock& clock, OnFindings on_findings)
    : options_(std::move(options)),
      clock_(clock),
      on_findings_(std::move(on_findings)),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

Probes::~Probes() { Stop(); }

void Probes::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  {
    MutexLock lock(mu_);
    changed_.NotifyAll();
  }
  thread_.join();
}

void Probes::Watch(const std::string& path) {
  if (path.empty()) return;
  MutexLock lock(mu_);
  if (std::find(watched_.begin(), watched_.end(), path) != watched_.end()) return;
  if (watched_.size() >= kMostWatched) watched_.pop_front();
  watched_.push_back(path);
}

std::vector<v1::Finding> Probes::findings() const {
  MutexLock lock(mu_);
  return findings_;
}

std::vector<std::string> Probes::Names() {
  std::vector<std::string> names = {"clock"};
  for (const auto& [name, check] : AllChecks()) names.push_back(name);
  return names;
}

void Probes::Run(std::stop_token stop) {
  absl::Duration wait = options_.first_after;
  while (true) {
    {
      const auto until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(wait);
      MutexLock lock(mu_);
      while (!stop.stop_requested() && changed_.WaitUntil(mu_, until)) {
      }
    }
    if (stop.stop_requested()) return;
    MakeAll(stop);
    wait = options_.every;
  }
}

void Probes::MakeAll(std::stop_token stop) {
  judge_.SeeClocks(clock_.WallNow(), clock_.BootNow());
  for (const auto& [name, check] : AllChecks()) {
    const absl::StatusOr<std::string> answer = Ask(name, stop);
    if (stop.stop_requested()) return;
    if (answer.ok()) {
      judge_.Answered(name, FromText(*answer));
    } else if (absl::IsDeadlineExceeded(answer.status())) {
      judge_.GaveNone(name, options_.deadline);
    } else {
      judge_.NotAsked(name, std::string(answer.status().message()));
    }
  }
  std::vector<v1::Finding> findings = judge_.Findings();
  {
    MutexLock lock(mu_);
    if (AreSame(findings, findings_)) return;
    findings_ = findings;
  }
  for (const v1::Finding& finding : findings) {
    log::Warn("a probe has found something",
              {{"check", finding.check()}, {"what", finding.message()}});
  }
  on_findings_(findings);
}

absl::StatusOr<std::string> Probes::Ask(const std::string& check, const std::stop_token& stop) {
  const absl::Status late = absl::DeadlineExceededError("no answer");
  if (const auto left = left_.find(check); left != left_.end()) {
    if (!left->second->Reap()) return late;
    left_.erase(left);
  }
  ProbeInputs inputs = options_.inputs;
  {
    MutexLock lock(mu_);
    inputs.paths.insert(inputs.paths.end(), watched_.begin(), watched_.end());
  }
  std::vector<std::string> environment = EngineEnvironment(/*threads=*/1);
  for (std::string& variable : CheckEnvironment(inputs)) environment.push_back(std::move(variable));
  std::vector<std::string> argv = options_.program;
  argv.push_back(check);
  MEGA_ASSIGN_OR_RETURN(
      std::unique_ptr<Process> process,
      Process::Fork({.argv = argv, .environment = environment, .directory = "/"}));
  MEGA_RETURN_IF_ERROR(process->Release());
  const UniqueFd out = process->TakeStdout();
  std::string text;
  bool ended = false;
  const absl::Duration deadline = clock_.BootNow() + options_.deadline;
  while (!ended && !stop.stop_requested() && clock_.BootNow() < deadline) {
    if (!IsReadable(out.get(), kSlice)) continue;
    char buffer[4096];
    const ssize_t got = read(out.get(), buffer, sizeof(buffer));
    ended = got <= 0 || text.size() + static_cast<size_t>(got) > kMostOutput;
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  process->Signal(SIGKILL);
  // Its end may take for ever where its answer has not come.
  (void)IsReadable(process->pidfd(), kDies);
  if (!process->Reap()) left_[check] = std::move(process);
  if (!ended) return late;
  return text;
}

}  // namespace mega::daemon
