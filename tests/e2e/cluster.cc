#include "tests/e2e/cluster.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <cstdio>
#include <sstream>

namespace mega::e2e {
namespace fs = std::filesystem;
using nlohmann::json;

std::string Binary(const std::string& name) { return std::string(MEGA_BIN_DIR) + "/" + name; }

namespace {

std::string PortFileText(const fs::path& file) {
  std::string text = ReadFile(file);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

Cluster::Cluster(const Network* network) : network_(network) {
  if (network_ != nullptr) address_ = network_->AddressOf("coordinator") + ":0";
  StartCoordinator();
}

std::vector<std::string> Cluster::On(const std::string& host, std::vector<std::string> argv) const {
  if (network_ == nullptr) return argv;
  std::vector<std::string> there = network_->In(host);
  there.insert(there.end(), argv.begin(), argv.end());
  there.push_back("--insecure");
  return there;
}

Cluster::~Cluster() {
  // Workers first: their engines leave with them.
  for (auto& [node, worker] : workers_) worker->Signal(SIGTERM);
  for (auto& [node, worker] : workers_) worker->Wait(Seconds(20));
  if (coordinator_) {
    coordinator_->Signal(SIGTERM);
    coordinator_->Wait(Seconds(10));
  }
}

void Cluster::StartCoordinator(std::vector<std::string> more) {
  const fs::path port = path() / "coordinator.port";
  const fs::path metrics_port = path() / "coordinator.metrics-port";
  fs::remove(port);
  fs::remove(metrics_port);
  std::vector<std::string> argv = {
      Binary("mega-coordinator"), "serve",       "--listen", address_,           "--state-dir",
      path() / "coordinator",     "--port-file", port,       "--metrics-listen", metrics_address_,
      "--metrics-port-file",      metrics_port};
  argv.insert(argv.end(), more.begin(), more.end());
  coordinator_ = std::make_unique<Process>(
      Process::Options{.argv = On("coordinator", argv), .output = path() / "coordinator.log"});
  ASSERT_TRUE(Eventually([&] { return fs::exists(port) && fs::exists(metrics_port); }, Seconds(10)))
      << coordinator_->Output();
  address_ = PortFileText(port);
  metrics_address_ = PortFileText(metrics_port);
}

void Cluster::StartWorker(const std::string& node, int devices, std::vector<std::string> more) {
  const fs::path metrics_port = path() / (node + ".metrics-port");
  fs::remove(metrics_port);
  std::vector<std::string> argv = {Binary("mega-worker"),
                                   "--coordinator",
                                   address_,
                                   "--node",
                                   node,
                                   "--devices",
                                   std::to_string(devices),
                                   "--state-dir",
                                   path() / ("worker-" + node),
                                   "--metrics-listen",
                                   "127.0.0.1:0",
                                   "--metrics-port-file",
                                   metrics_port};
  if (network_ != nullptr) {
    argv.insert(argv.end(), {"--listen", network_->AddressOf(node) + ":0"});
  }
  argv.insert(argv.end(), more.begin(), more.end());
  workers_[node] = std::make_unique<Process>(
      Process::Options{.argv = On(node, argv), .output = path() / ("worker-" + node + ".log")});
  const auto is_ready = [&] {
    const json answer = CtlJson({"nodes", "-o", "json"});
    if (!answer.contains("nodes")) return false;
    for (const json& n : answer["nodes"]) {
      if (n["name"] == "nodes/" + node || n["name"] == node)
        return n["state"] == "NODE_STATE_READY";
    }
    return false;
  };
  ASSERT_TRUE(Eventually(is_ready, Seconds(15))) << workers_[node]->Output();
}

std::string Cluster::worker_metrics_address(const std::string& node) const {
  return PortFileText(path() / (node + ".metrics-port"));
}

Result Cluster::Ctl(std::vector<std::string> arguments, Seconds within) const {
  std::vector<std::string> argv = {Binary("megactl"), "--coordinator", address_};
  argv.insert(argv.end(), certificate_.begin(), certificate_.end());
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return RunProgram(On("coordinator", argv), within);
}

json Cluster::CtlJson(std::vector<std::string> arguments) const {
  const Result result = Ctl(std::move(arguments));
  json value = json::parse(result.out, nullptr, false);
  return value.is_discarded() ? json::object() : value;
}

std::string Cluster::Submit(const std::string& yaml) {
  static int count = 0;
  const fs::path file = path() / ("job-" + std::to_string(++count) + ".yaml");
  WriteFile(file, yaml);
  const Result result = Ctl({"submit", "-q", file});
  EXPECT_EQ(result.code, 0) << result.out;
  std::string uid = result.out.substr(0, result.out.find('\n'));
  return uid;
}

std::string Cluster::Phase(const std::string& uid) const {
  const json job = Job(uid);
  return job.value("phase", "");
}

std::vector<json> Cluster::Steps(const std::string& uid) const {
  std::vector<json> steps;
  std::istringstream lines(Ctl({"steps", uid, "-o", "json"}).out);
  for (std::string line; std::getline(lines, line);) {
    json step = json::parse(line, nullptr, false);
    if (step.is_object() && step.contains("step")) steps.push_back(std::move(step));
  }
  return steps;
}

int64_t Cluster::LastStep(const std::string& uid) const {
  return Int(Job(uid).value("last_step", json(0)));
}

pid_t Cluster::RankPid(const std::string& uid, int rank) const {
  for (const pid_t pid : PidsWith("--job " + uid)) {
    std::string line = ReadFile("/proc/" + std::to_string(pid) + "/cmdline");
    std::replace(line.begin(), line.end(), '\0', ' ');
    if (line.find("--rank " + std::to_string(rank) + " ") != std::string::npos) return pid;
  }
  return 0;
}

bool Cluster::WaitForStep(const std::string& uid, int64_t step, Seconds within) const {
  return Eventually([&] { return LastStep(uid) >= step; }, within);
}

bool Cluster::WaitForPhase(const std::string& uid, const std::string& phase, Seconds within) const {
  return Eventually([&] { return Phase(uid) == phase; }, within);
}

std::string TinyJob(const fs::path& folder, const std::string& name, int64_t dp, int64_t steps) {
  const fs::path text = folder / "tiny.txt";
  if (!fs::exists(text)) {
    std::string words;
    for (int i = 0; i < 4000; ++i)
      words += "line " + std::to_string(i * i % 977) + " of a tiny text\n";
    WriteFile(text, words);
  }
  std::ostringstream yaml;
  yaml << "apiVersion: mega/v1\nkind: TrainingJob\nmetadata:\n  name: " << name
       << "\nspec:\n"
          "  model: {num_layers: 2, hidden_size: 64, ffn_hidden_size: 128, num_attention_heads: 4,"
          " num_query_groups: 2}\n"
          "  data: {paths: ["
       << text.string()
       << "], seq_length: 64}\n"
          "  training: {steps: "
       << steps
       << ", global_batch_size: 12, eval_steps: 2}\n"
          "  optimizer: {lr: 1e-3, warmup_steps: 5}\n"
          "  parallelism: {data_parallel_size: "
       << dp << "}\n";
  return yaml.str();
}

int64_t Int(const json& value) {
  return value.is_string() ? std::stoll(value.get<std::string>()) : value.get<int64_t>();
}

double TimeOf(const json& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  EXPECT_EQ(std::sscanf(text.get<std::string>().c_str(), "%d-%d-%dT%d:%d:%lfZ", &year, &month, &day,
                        &hour, &minute, &second),
            6)
      << text;
  std::tm date{};
  date.tm_year = year - 1900;
  date.tm_mon = month - 1;
  date.tm_mday = day;
  date.tm_hour = hour;
  date.tm_min = minute;
  return static_cast<double>(timegm(&date)) + second;
}

double Now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::map<std::string, std::string> FinalState(const fs::path& checkpoints, int64_t step) {
  std::map<std::string, std::string> state;
  char folder[32];
  std::snprintf(folder, sizeof(folder), "step-%08lld", static_cast<long long>(step));
  for (const auto& entry : fs::recursive_directory_iterator(checkpoints)) {
    if (entry.path().parent_path().filename() != folder) continue;
    if (entry.path().extension() != ".safetensors") continue;
    const std::string name = entry.path().filename();
    state[name.substr(name.find("-r"))] = ReadFile(entry.path());
  }
  return state;
}

}  // namespace mega::e2e
