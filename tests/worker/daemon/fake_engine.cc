// Test support: an engine that speaks TrainerService and then follows a script, given as the job's
// name: instructions separated by ';', each NAME or NAME=VALUE.
//   ready            tells an address          connect          waits for the peers' addresses
//   steps=N          reports N steps           stepmore=A-B     reports steps A to B
//   part=S           a checkpoint part         commit=S         waits for its commit
//   out=T err=T      prints                    spam=N           N bytes of numbered lines
//   env              prints environment and folder
//   exit=N segv      ends so                   finish=T         last words (ok if empty)
//   outlive          ignores the lease's end
//   deaf             ignores SIGTERM           grandchild       leaves a child that holds the pipes
//   stop             waits for StopTraining    hang             waits for ever
//   file=PATH        waits for a file to exist
// Like the real one it leaves (76) when its stream ends, and at its lease's end (75).
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "fmt/core.h"
#include "mega/v1/trainer.grpc.pb.h"

extern char** environ;

namespace mega::testing {
namespace {

using namespace std::chrono_literals;

class FakeEngine {
 public:
  FakeEngine(const std::string& socket, v1::RankRef rank) : rank_(std::move(rank)) {
    channel_ = grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials());
    stream_ = v1::TrainerService::NewStub(channel_)->Attach(&context_);
    v1::EngineMessage message;
    *message.mutable_attached()->mutable_rank() = rank_;
    message.mutable_attached()->set_pid(getpid());
    message.mutable_attached()->add_numeric_libraries("fake 1");
    stream_->Write(message);
    v1::TrainerMessage start;
    if (!stream_->Read(&start)) _exit(76);
    start_ = start.start();
    lease_end_ns_ = start_.lease_end().boottime_ns();
    std::thread([this] { Listen(); }).detach();
    std::thread([this] { WatchLease(); }).detach();
  }

  [[noreturn]] void Play() {
    for (const auto& instruction : absl::StrSplit(start_.job_name(), ';')) {
      const std::string text(instruction);
      const size_t equals = text.find('=');
      Do(text.substr(0, equals), equals == std::string::npos ? "" : text.substr(equals + 1));
    }
    Leave(0);
  }

 private:
  void Listen() {
    v1::TrainerMessage message;
    while (stream_->Read(&message)) {
      if (message.has_lease_end()) lease_end_ns_ = message.lease_end().boottime_ns();
      if (message.has_connect()) connected_ = true;
      if (message.has_stop()) stop_ = true;
      if (message.has_checkpoint_committed()) {
        committed_ = message.checkpoint_committed().manifest().step();
      }
    }
    if (!leaving_) _exit(76);
    ended_ = true;
  }

  void WatchLease() {
    while (true) {
      if (!outlive_ && absl::ToInt64Nanoseconds(clock_.BootNow()) >= lease_end_ns_) _exit(75);
      std::this_thread::sleep_for(20ms);
    }
  }

  // Says goodbye as TrainerLink does: what was written is read before the process ends.
  [[noreturn]] void Leave(int code) {
    fflush(stdout);
    leaving_ = true;
    stream_->WritesDone();
    Await([this] { return ended_.load(); }, 2s);
    _exit(code);
  }

  template <typename Condition>
  static void Await(Condition condition, std::chrono::milliseconds longest = 60s) {
    const auto deadline = std::chrono::steady_clock::now() + longest;
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(1ms);
    }
  }

  void Report(int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      v1::EngineMessage message;
      message.mutable_step()->set_step(step);
      message.mutable_step()->set_total_steps(last);
      message.mutable_step()->set_step_seconds(0.25);
      message.mutable_step()->set_memory_bytes(1 << 20);
      stream_->Write(message);
    }
  }

  static void Spam(int64_t bytes) {
    std::string line;
    for (int64_t written = 0, number = 0; written < bytes; written += std::ssize(line), ++number) {
      line = fmt::format("line {:012} {}\n", number,
                         std::string(static_cast<size_t>(number % 97), '.'));
      fwrite(line.data(), 1, line.size(), stdout);
    }
    fflush(stdout);
  }

  void Do(const std::string& name, const std::string& value) {
    int64_t number = 0;
    const bool has_number = absl::SimpleAtoi(value, &number);
    v1::EngineMessage message;
    if (name == "ready") {
      message.mutable_ready()->set_address(fmt::format("address of rank {}", rank_.rank()));
      stream_->Write(message);
    } else if (name == "connect") {
      Await([this] { return connected_.load(); });
    } else if (name == "steps" && has_number) {
      Report(1, number);
    } else if (name == "stepmore") {
      const std::vector<std::string> ends = absl::StrSplit(value, '-');
      Report(std::stoll(ends.at(0)), std::stoll(ends.at(1)));
    } else if (name == "part") {
      message.mutable_checkpoint_part()->set_step(number);
      message.mutable_checkpoint_part()->set_directory("/nowhere");
      stream_->Write(message);
    } else if (name == "commit") {
      Await([&] { return committed_ >= number; });
    } else if (name == "out") {
      printf("%s\n", value.c_str());
      fflush(stdout);
    } else if (name == "err") {
      fprintf(stderr, "%s\n", value.c_str());
    } else if (name == "spam") {
      Spam(number);
    } else if (name == "env") {
      for (char** entry = environ; *entry != nullptr; ++entry) printf("%s\n", *entry);
      printf("cwd=%s\n", std::filesystem::current_path().c_str());
    } else if (name == "exit") {
      Leave(static_cast<int>(number));
    } else if (name == "segv") {
      const rlimit no_core{0, 0};
      setrlimit(RLIMIT_CORE, &no_core);
      raise(SIGSEGV);
    } else if (name == "finish") {
      message.mutable_finished()->set_ok(value.empty());
      message.mutable_finished()->set_message(value);
      stream_->Write(message);
    } else if (name == "outlive") {
      outlive_ = true;
    } else if (name == "deaf") {
      signal(SIGTERM, SIG_IGN);
    } else if (name == "grandchild") {
      if (fork() == 0) {
        execlp("sleep", "sleep", "600", nullptr);
        _exit(1);
      }
    } else if (name == "stop") {
      signal(SIGTERM, SIG_IGN);
      Await([this] { return stop_.load(); });
    } else if (name == "file") {
      Await([&] { return std::filesystem::exists(value); });
    } else if (name == "hang") {
      while (true) pause();
    } else {
      fprintf(stderr, "fake_engine: no instruction '%s'\n", name.c_str());
      Leave(2);
    }
  }

  const SystemClock clock_;
  const v1::RankRef rank_;
  v1::StartTraining start_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::EngineMessage, v1::TrainerMessage>> stream_;
  std::atomic<int64_t> lease_end_ns_{0};
  std::atomic<int64_t> committed_{-1};
  std::atomic<bool> connected_{false}, stop_{false}, leaving_{false}, ended_{false},
      outlive_{false};
};

int Main(int argc, char** argv) {
  if (argc >= 2 && strcmp(argv[1], "version") == 0) {
    printf("{\"version\": \"0.1.0\", \"numeric_libraries\": [\"fake 1\"]}\n");
    return 0;
  }
  std::map<std::string, std::string> flags;
  for (int i = 2; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  v1::RankRef rank;
  rank.set_job_uid(flags["--job"]);
  rank.set_attempt(std::stoll(flags["--attempt"]));
  rank.set_epoch(std::stoll(flags["--epoch"]));
  rank.set_rank(std::stoll(flags["--rank"]));
  FakeEngine(flags["--socket"], rank).Play();
}

}  // namespace
}  // namespace mega::testing

int main(int argc, char** argv) { return mega::testing::Main(argc, argv); }
