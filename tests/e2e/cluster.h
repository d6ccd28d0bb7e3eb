// A coordinator and workers as real processes on loopback, driven through megactl.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/network.h"
#include "tests/e2e/process.h"

namespace mega::e2e {

std::string Binary(const std::string& name);  // DIR/bin/NAME

class Cluster {
 public:
  // The coordinator alone. In a network: on its host "coordinator"; each worker is on that of its
  // node, which must have been added. The network outlives this.
  explicit Cluster(const Network* network = nullptr);
  ~Cluster();

  const std::filesystem::path& path() const { return dir_.path(); }
  const std::string& address() const { return address_; }
  const std::string& metrics_address() const { return metrics_address_; }

  // Same state folder and the same port as before.
  void StartCoordinator(std::vector<std::string> more = {});
  Process& coordinator() { return *coordinator_; }
  void StartWorker(const std::string& node, int devices, std::vector<std::string> more = {});
  Process& worker(const std::string& node) { return *workers_.at(node); }
  std::string worker_metrics_address(const std::string& node) const;

  // Of megactl before its command: the certificate of a user.
  void ShowCertificate(std::vector<std::string> flags) { certificate_ = std::move(flags); }
  // megactl with this coordinator.
  Result Ctl(std::vector<std::string> arguments, Seconds within = Seconds(60)) const;
  nlohmann::json CtlJson(std::vector<std::string> arguments) const;

  // Submits a job file's text; returns the uid.
  std::string Submit(const std::string& yaml);
  nlohmann::json Job(const std::string& uid) const { return CtlJson({"get", uid, "-o", "json"}); }
  std::string Phase(const std::string& uid) const;
  // Step reports of rank 0 so far.
  std::vector<nlohmann::json> Steps(const std::string& uid) const;
  int64_t LastStep(const std::string& uid) const;
  // Pid of a rank of the job, now. 0 when it does not run.
  pid_t RankPid(const std::string& uid, int rank) const;
  bool WaitForStep(const std::string& uid, int64_t step, Seconds within) const;
  bool WaitForPhase(const std::string& uid, const std::string& phase, Seconds within) const;

 private:
  // argv as it is started there.
  std::vector<std::string> On(const std::string& host, std::vector<std::string> argv) const;

  const Network* const network_;
  TempDir dir_;
  std::vector<std::string> certificate_;
  std::string address_ = "127.0.0.1:0";
  std::string metrics_address_ = "127.0.0.1:0";
  std::unique_ptr<Process> coordinator_;
  std::map<std::string, std::unique_ptr<Process>> workers_;
};

// A small job on generated text: `steps` steps, global batch 12, dp ranks. `more` is YAML under
// spec sections, given as "section.key=value" for --set.
std::string TinyJob(const std::filesystem::path& folder, const std::string& name, int64_t dp,
                    int64_t steps);

// An int64 of a message's JSON, where it is a string.
int64_t Int(const nlohmann::json& value);
// google.protobuf.Timestamp as JSON, "2026-01-02T03:04:05.678Z" → seconds since the epoch.
double TimeOf(const nlohmann::json& text);
double Now();  // likewise

// Every checkpoint slice of that step, by rank: weights and optimizer, bit for bit, whatever the
// attempt that saved it.
std::map<std::string, std::string> FinalState(const std::filesystem::path& checkpoints,
                                              int64_t step);

}  // namespace mega::e2e
