// Bad input and faults: a clear error, no crash, nothing left behind.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "tests/e2e/cluster.h"

namespace mega::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kInvalidSpec = 8;

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Result RunMega(const fs::path& folder, const std::string& yaml, std::vector<std::string> more = {},
               Seconds within = Seconds(90)) {
  const fs::path file = folder / "job.yaml";
  WriteFile(file, yaml);
  std::vector<std::string> argv = {Binary("megactl"), "run", file, "--run-dir", folder / "run"};
  argv.insert(argv.end(), more.begin(), more.end());
  return RunProgram(argv, within, folder);
}

struct BadJob {
  std::string name, from, to;     // what is changed in a good job
  std::vector<std::string> says;  // all of it must be in the message
};

TEST(BadInput, JobFileErrorsNameTheFieldAndTheWayOut) {
  TempDir dir;
  const std::string good = TinyJob(dir.path(), "bad", 2, 5);
  const std::vector<BadJob> cases = {
      {"unknown key", "num_layers: 2", "num_layer: 2", {"num_layer", "num_layers"}},
      {"duplicate key", "steps: 5,", "steps: 5, steps: 6,", {"steps", "twice"}},
      {"mistyped value", "num_layers: 2", "num_layers: two", {"model.num_layers", "two"}},
      {"heads that do not divide",
       "num_query_groups: 2",
       "num_query_groups: 3",
       {"num_query_groups is 3", "num_attention_heads is 4"}},
      {"zero", "data_parallel_size: 2", "data_parallel_size: 0", {"data_parallel_size", "0"}},
      {"negative", "steps: 5", "steps: -1", {"training.steps", "-1"}},
      {"huge", "num_layers: 2", "num_layers: 99999999999999999999", {"num_layers"}},
      {"feature that does not exist yet",
       "{data_parallel_size: 2}",
       "{data_parallel_size: 2, tensor_parallel_size: 2}",
       {"tensor_parallel_size", "not implemented"}},
      {"missing data file", "tiny.txt", "missing.txt", {"missing.txt"}},
  };
  for (const BadJob& bad : cases) {
    const Result result = RunMega(dir.path(), Replaced(good, bad.from, bad.to));
    EXPECT_NE(result.code, 0) << bad.name;
    for (const std::string& word : bad.says) {
      EXPECT_NE(result.out.find(word), std::string::npos)
          << bad.name << ": no '" << word << "' in\n"
          << result.out;
    }
  }
  EXPECT_TRUE(PidsWith(dir.path()).empty());
}

TEST(BadInput, WrongMagicInAnIndexIsNamed) {
  TempDir dir;
  const fs::path prefix = dir.path() / "data";
  WriteFile(dir.path() / "t.txt", std::string(20000, 'x'));
  ASSERT_EQ(
      RunProgram({Binary("megactl"), "data", "build", "--out", prefix, dir.path() / "t.txt"}).code,
      0);
  std::string index = ReadFile(prefix.string() + ".idx");
  index[0] = 'X';
  WriteFile(prefix.string() + ".idx", index);
  const std::string good = TinyJob(dir.path(), "magic", 1, 5);
  const Result result =
      RunMega(dir.path(), Replaced(good, (dir.path() / "tiny.txt").string(), prefix));
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_NE(result.out.find("data.idx"), std::string::npos) << result.out;
}

TEST(BadInput, UnreadableCheckpointIsNamedAndNotRetried) {
  TempDir dir;
  fs::create_directories(dir.path() / "empty");
  const Result result =
      RunMega(dir.path(), TinyJob(dir.path(), "resume", 1, 5) +
                              "  checkpoint: {load: " + (dir.path() / "empty").string() + "}\n");
  EXPECT_NE(result.code, 0);
  EXPECT_NE(result.out.find("checkpoint.load"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("attempt 2"), std::string::npos) << result.out;
}

TEST(BadInput, PortInUseIsNamed) {
  Cluster cluster;
  const Result result = RunProgram({Binary("mega-coordinator"), "serve", "--listen",
                                    cluster.address(), "--state-dir", cluster.path() / "second"});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.out.find(cluster.address()), std::string::npos) << result.out;
}

TEST(BadInput, TwoSubmitsWithOneRequestIdGiveOneJob) {
  Cluster cluster;
  WriteFile(cluster.path() / "job.yaml", TinyJob(cluster.path(), "once", 1, 5));
  const auto submit = [&] {
    return cluster.Ctl({"submit", "-q", "--request-id", "3f0f6a3e-0001-4000-8000-000000000001",
                        cluster.path() / "job.yaml"});
  };
  const Result first = submit(), second = submit();
  EXPECT_EQ(first.code, 0) << first.out;
  EXPECT_EQ(first.out, second.out);
  EXPECT_EQ(cluster.CtlJson({"get", "-o", "json"})["jobs"].size(), 1);
}

// Every other time as HTTP/2, so that it gets past the first frame. Closes `fd`.
void SendNoise(int fd, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes =
      seed % 2 == 0 ? "" : std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  const size_t preface = bytes.size();
  bytes.resize(65536);
  for (size_t i = preface; i < bytes.size(); ++i) bytes[i] = static_cast<char>(random());
  for (int i = 0; i < 16; ++i) {
    if (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) break;
  }
  close(fd);
}

void SendRandomBytes(const std::string& address, uint64_t seed) {
  const int port = std::stoi(address.substr(address.rfind(':') + 1));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0) << address;
  SendNoise(fd, seed);
}

// The Unix socket between a worker and its engines, as the engine was told it.
std::string SocketOf(pid_t engine) {
  const std::string line = ReadFile("/proc/" + std::to_string(engine) + "/cmdline");
  const std::string flag = std::string("--socket") + '\0';
  const size_t at = line.find(flag);
  EXPECT_NE(at, std::string::npos);
  return at == std::string::npos ? "" : line.c_str() + at + flag.size();
}

void SendRandomBytesToSocket(const std::string& path, uint64_t seed) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(to.sun_path));
  std::copy(path.begin(), path.end(), to.sun_path);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0) << path;
  SendNoise(fd, seed);
}

// Steps of milliseconds: still training when a slow megactl has told what happened.
constexpr int64_t kLongJob = 1500;
constexpr Seconds kLongJobTakes(240);  // half a minute by itself; beside other tests much more

TEST(Faults, RandomBytesOnEveryPortChangeNothing) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string uid = cluster.Submit(TinyJob(cluster.path(), "noise", 2, kLongJob));
  ASSERT_TRUE(cluster.WaitForStep(uid, 5, Seconds(60)));
  const json nodes = cluster.CtlJson({"nodes", "-o", "json"});
  const std::string socket = SocketOf(cluster.RankPid(uid, 0));
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SendRandomBytesToSocket(socket, seed);
    SendRandomBytes(cluster.address(), seed);
    SendRandomBytes(cluster.metrics_address(), seed);
    SendRandomBytes(cluster.worker_metrics_address("a"), seed);
    SendRandomBytes(nodes["nodes"][0]["address"].get<std::string>(), seed);
  }
  EXPECT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", kLongJobTakes));
  EXPECT_EQ(cluster.Job(uid)["attempts"].size(), 1);
  EXPECT_TRUE(cluster.coordinator().Running());
  EXPECT_TRUE(cluster.worker("a").Running());
}

// A disk that takes no large file any more: a checkpoint's do not fit, logs and the rest do.
void LimitFiles(pid_t pid, rlim_t bytes) {
  rlimit limit{};
  ASSERT_EQ(prlimit(pid, RLIMIT_FSIZE, nullptr, &limit), 0);
  limit.rlim_cur = bytes;
  ASSERT_EQ(prlimit(pid, RLIMIT_FSIZE, &limit, nullptr), 0);
}

constexpr rlim_t kSmallFiles = 256 << 10;

TEST(Faults, AFullDiskOnTheWayLetsTheJobGoOn) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string uid = cluster.Submit(TinyJob(cluster.path(), "full", 2, kLongJob) +
                                         "  checkpoint: {interval_steps: 50}\n");
  ASSERT_TRUE(cluster.WaitForStep(uid, 5, Seconds(60)));
  for (const int rank : {0, 1}) LimitFiles(cluster.RankPid(uid, rank), kSmallFiles);
  const auto failed = [&] {
    return cluster.Ctl({"events", uid}).out.find("File too large") != std::string::npos;
  };
  EXPECT_TRUE(Eventually(failed, Seconds(60)));
  for (const int rank : {0, 1}) LimitFiles(cluster.RankPid(uid, rank), RLIM_INFINITY);
  EXPECT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", kLongJobTakes))
      << cluster.Job(uid).dump(1);
  const json job = cluster.Job(uid);
  EXPECT_EQ(job["attempts"].size(), 1);
  ASSERT_FALSE(job.value("checkpoints", json::array()).empty());
  EXPECT_EQ(Int(job["checkpoints"].back()["step"]), kLongJob);
}

TEST(Faults, AFullDiskAtTheEndFailsTheJobAndSaysWhatIsLost) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  // And so its rank of every attempt. (Two ranks would need shared memory, which counts as files.)
  LimitFiles(cluster.worker("a").pid(), kSmallFiles);
  const std::string uid = cluster.Submit(TinyJob(cluster.path(), "full", 1, 20));
  EXPECT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_FAILED", Seconds(120)))
      << cluster.Job(uid).dump(1);
  const json job = cluster.Job(uid);
  EXPECT_TRUE(job.value("checkpoints", json::array()).empty());
  EXPECT_NE(job.dump().find("the checkpoint of step 20, the last, was not saved"),
            std::string::npos)
      << job.dump(1);
  EXPECT_NE(cluster.Ctl({"events", uid}).out.find("File too large"), std::string::npos);
}

TEST(Faults, SigtermOfARankIsAFailureThatHeals) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string uid = cluster.Submit(TinyJob(cluster.path(), "term", 2, kLongJob));
  ASSERT_TRUE(cluster.WaitForStep(uid, 5, Seconds(60)));
  const pid_t victim = cluster.RankPid(uid, 1);
  ASSERT_GT(victim, 0);
  ASSERT_EQ(kill(victim, SIGTERM), 0);
  EXPECT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", kLongJobTakes));
  const json job = cluster.Job(uid);
  ASSERT_EQ(job["attempts"].size(), 2);
  EXPECT_EQ(Int(job["attempts"][0]["ranks"][1]["exit"]["signal"]), SIGTERM);
}

TEST(Faults, SigtermOfTheWorkerStopsItsRanksAndEndsCleanly) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string uid = cluster.Submit(TinyJob(cluster.path(), "leave", 2, 3000));
  ASSERT_TRUE(cluster.WaitForStep(uid, 5, Seconds(60)));
  cluster.worker("a").Signal(SIGTERM);
  const auto exit = cluster.worker("a").Wait(Seconds(20));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 0);
  EXPECT_TRUE(PidsWith("--job " + uid).empty());
  cluster.StartWorker("b", 2);
  EXPECT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_RUNNING", Seconds(30)))
      << cluster.Job(uid).dump(1);
}

TEST(Faults, SigtermOfTheCoordinatorCostsNoStep) {
  Cluster cluster;
  cluster.StartWorker("a", 2);
  const std::string uid = cluster.Submit(TinyJob(cluster.path(), "calm", 2, 300));
  ASSERT_TRUE(cluster.WaitForStep(uid, 5, Seconds(60)));
  cluster.coordinator().Signal(SIGTERM);
  const auto exit = cluster.coordinator().Wait(Seconds(10));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 0);
  cluster.StartCoordinator();
  EXPECT_TRUE(cluster.WaitForPhase(uid, "JOB_PHASE_SUCCEEDED", Seconds(90)));
  EXPECT_EQ(cluster.Job(uid)["attempts"].size(), 1);
  EXPECT_EQ(cluster.Steps(uid).size(), 300);
}

class RunCommand : public ::testing::Test {
 protected:
  std::unique_ptr<Process> Start(const std::string& name, const std::string& folder,
                                 int64_t steps) {
    fs::create_directories(dir_.path() / folder);
    const fs::path file = dir_.path() / folder / "job.yaml";
    WriteFile(file, TinyJob(dir_.path(), name, 2, steps));
    return std::make_unique<Process>(Process::Options{
        .argv = {Binary("megactl"), "run", file, "--run-dir", dir_.path() / folder / "run",
                 "--steps-out", dir_.path() / folder / "steps.jsonl"},
        .output = dir_.path() / folder / "output"});
  }
  bool HasStep(const std::string& folder, int64_t step) {
    const std::string text = ReadFile(dir_.path() / folder / "steps.jsonl");
    return std::count(text.begin(), text.end(), '\n') >= step;
  }
  TempDir dir_;
};

TEST_F(RunCommand, PrintsEveryStepWritesJsonlAndEndsWithASample) {
  auto run = Start("plain", "one", 20);
  const auto exit = run->Wait(Seconds(90));
  ASSERT_TRUE(exit.has_value());
  const std::string output = run->Output();
  EXPECT_EQ(exit->code, 0) << output;
  for (int step = 1; step <= 20; ++step) {
    EXPECT_NE(output.find("step " + std::to_string(step) + "/20 loss "), std::string::npos) << step;
  }
  std::istringstream lines(ReadFile(dir_.path() / "one" / "steps.jsonl"));
  int64_t step = 0;
  for (std::string line; std::getline(lines, line);) {
    const json report = json::parse(line);
    EXPECT_EQ(Int(report["step"]), ++step);
    for (const char* key : {"loss", "grad_norm", "lr", "tokens_per_s"}) {
      EXPECT_TRUE(report[key].is_number()) << key;
    }
  }
  EXPECT_EQ(step, 20);
  for (const char* word : {"sample", "checkpoint", "next", "megactl generate"}) {
    EXPECT_NE(output.find(word), std::string::npos) << word << "\n" << output;
  }
  EXPECT_TRUE(PidsWith(dir_.path()).empty());
}

TEST_F(RunCommand, CtrlCLeavesNoProcess) {
  auto run = Start("stopped", "one", 100000);
  ASSERT_TRUE(Eventually([&] { return HasStep("one", 3); }, Seconds(60))) << run->Output();
  run->Signal(SIGINT);
  const auto exit = run->Wait(Seconds(30));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 130) << run->Output();
  EXPECT_TRUE(PidsWith(dir_.path()).empty());
}

TEST_F(RunCommand, KillOfMegactlLeavesNoProcess) {
  auto run = Start("killed", "one", 100000);
  ASSERT_TRUE(Eventually([&] { return HasStep("one", 3); }, Seconds(60))) << run->Output();
  run->Signal(SIGKILL);
  EXPECT_TRUE(Eventually([&] { return PidsWith(dir_.path()).empty(); }, Seconds(30)));
}

TEST_F(RunCommand, ASecondRunBesideTheFirstDoesNotMeetIt) {
  auto first = Start("twin", "one", 60);
  auto second = Start("twin", "two", 60);
  const auto first_exit = first->Wait(Seconds(120)), second_exit = second->Wait(Seconds(120));
  ASSERT_TRUE(first_exit && second_exit);
  EXPECT_EQ(first_exit->code, 0) << first->Output();
  EXPECT_EQ(second_exit->code, 0) << second->Output();
}

}  // namespace
}  // namespace mega::e2e
