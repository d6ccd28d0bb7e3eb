// The program itself: its flags, files, signals and exit codes.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/listen_address.h"
#include "gmock/gmock.h"
#include "tests/base/metrics/http_client.h"
#include "tests/coordinator/service/fixture.h"
#include "tests/support/eventually.h"

namespace mega::service {
namespace {

using ::testing::HasSubstr;

// Runs mega-coordinator; killed at the end if it still lives.
class Program {
 public:
  Program(std::vector<std::string> arguments, const std::string& output) : output_(output) {
    int pipe_fds[2];
    EXPECT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    stdin_ = pipe_fds[1];
    std::string program = MEGA_BIN_DIR "/mega-coordinator";
    std::vector<char*> argv{program.data()};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(pipe_fds[0], STDIN_FILENO);
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(pipe_fds[0]);
    close(out);
  }
  ~Program() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    CloseStdin();
  }
  pid_t pid() const { return pid_; }
  void Signal(int signal) { kill(pid_, signal); }
  void CloseStdin() {
    if (stdin_ >= 0) close(std::exchange(stdin_, -1));
  }
  // −1: it did not end by itself in time.
  int Wait() {
    const absl::Time deadline = absl::Now() + kPatience;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (absl::Now() > deadline) return -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  std::string output() const {
    std::ifstream in(output_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  const std::string output_;
  pid_t pid_ = -1;
  int stdin_ = -1;
};

class BinaryTest : public ::testing::Test {
 protected:
  std::vector<std::string> ServeArguments() const {
    return {"--state-dir",         dir_.path() + "/state", "--port-file",
            dir_.path() + "/port", "--metrics-port-file",  dir_.path() + "/metrics-port"};
  }
  std::string AwaitPort(const std::string& name = "port") const {
    const absl::Time deadline = absl::Now() + kPatience;
    while (absl::Now() < deadline) {
      std::ifstream in(dir_.path() + "/" + name);
      std::string line;
      if (std::getline(in, line)) return line;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return "";
  }
  std::string out() const { return dir_.path() + "/out"; }

  TempDir dir_;
};

TEST_F(BinaryTest, ServesWritesItsPortsAndStopsOnSigterm) {
  Program program(ServeArguments(), out());
  const std::string address = AwaitPort();
  ASSERT_THAT(address, ::testing::StartsWith("127.0.0.1:"));
  EXPECT_THAT(AwaitPort("metrics-port"), ::testing::StartsWith("127.0.0.1:"));
  const auto stub =
      v1::ClusterService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
  v1::GetVersionResponse version;
  EXPECT_TRUE(stub->GetVersion(&context, v1::GetVersionRequest(), &version).ok());
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(), 0) << program.output();
}

// gRPC's own listener would accept nobody any more, ever.
TEST_F(BinaryTest, ManyConnectionsTakeNoDescriptorsFromTheRest) {
  Program program(ServeArguments(), out());
  const ListenAddress address = ParseListenAddress("port file", AwaitPort()).value();
  const ListenAddress metrics = ParseListenAddress("port file", AwaitPort("metrics-port")).value();
  const auto submit = [&](const std::string& name) {
    const auto stub = v1::JobService::NewStub(
        grpc::CreateChannel(address.ToString(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
    v1::Job job;
    return stub->SubmitJob(&context, ServiceTest::Request(name), &job);
  };
  ASSERT_TRUE(submit("before").ok());
  const rlimit few{256, 256};
  ASSERT_EQ(prlimit(program.pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  {
    std::vector<std::unique_ptr<mega::testing::HttpClient>> silent;
    for (int i = 0; i < 400; ++i) {
      silent.push_back(std::make_unique<mega::testing::HttpClient>(address.port));
    }
    EXPECT_TRUE(mega::testing::EventuallyWithin(kPatience, [&] {
      return program.output().find("connections are refused") != std::string::npos;
    }));
    mega::testing::HttpClient scrape(metrics.port);
    ASSERT_TRUE(scrape.Send("GET /metrics HTTP/1.1\r\n\r\n"));
    const auto page = scrape.ReadToEnd(std::chrono::seconds(20));
    ASSERT_TRUE(page.has_value());
    EXPECT_THAT(*page, HasSubstr("200 OK"));
  }
  const grpc::Status after = submit("after");
  EXPECT_TRUE(after.ok()) << after.error_message();
}

// Case: each such call wrote a line of protobuf's own into the log, past its level and its form.
TEST_F(BinaryTest, ACallThatIsNoMessageWritesNothingIntoTheLog) {
  Program program(ServeArguments(), out());
  const auto stub =
      v1::JobService::NewStub(grpc::CreateChannel(AwaitPort(), grpc::InsecureChannelCredentials()));
  v1::GetJobRequest request;
  request.set_name("\xFF\xFE");
  for (int i = 0; i < 3; ++i) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
    v1::Job job;
    EXPECT_FALSE(stub->GetJob(&context, request, &job).ok());
  }
  EXPECT_THAT(program.output(), ::testing::Not(HasSubstr("protobuf")));
}

TEST_F(BinaryTest, MayOpenAsManyFilesAsTheMachineAllows) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{256, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  Program program(ServeArguments(), out());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_NE(AwaitPort(), "");
  rlimit got{};
  ASSERT_EQ(prlimit(program.pid(), RLIMIT_NOFILE, nullptr, &got), 0);
  EXPECT_EQ(got.rlim_cur, before.rlim_max);
}

TEST_F(BinaryTest, StopsWhenStdinEnds) {
  std::vector<std::string> arguments = ServeArguments();
  arguments.push_back("--exit-on-stdin-eof");
  Program program(arguments, out());
  ASSERT_NE(AwaitPort(), "");
  program.CloseStdin();
  EXPECT_EQ(program.Wait(), 0) << program.output();
}

TEST_F(BinaryTest, PortInUseEndsWithOneAndSaysSo) {
  Program first(ServeArguments(), out());
  const std::string address = AwaitPort();
  Program second({"--state-dir", dir_.path() + "/other", "--listen", address},
                 dir_.path() + "/out2");
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.output(), HasSubstr("cannot listen on " + address));
  // Our words alone, without those of a library before them.
  EXPECT_TRUE(second.output().starts_with("mega-coordinator: ")) << second.output();
}

TEST_F(BinaryTest, FailedCommitEndsWithThreeAndTheCallerIsPromisedNothing) {
  // No file of the program can grow any more, as on a full disk: writes fail once they may not
  // kill.
  signal(SIGXFSZ, SIG_IGN);
  Program program(ServeArguments(), out());
  const std::string address = AwaitPort();
  ASSERT_NE(address, "");
  const rlimit none{0, 0};
  ASSERT_EQ(prlimit(program.pid(), RLIMIT_FSIZE, &none, nullptr), 0);
  const auto stub =
      v1::JobService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
  v1::Job job;
  EXPECT_FALSE(stub->SubmitJob(&context, ServiceTest::Request("lost"), &job).ok());
  EXPECT_EQ(program.Wait(), 3) << program.output();
  signal(SIGXFSZ, SIG_DFL);

  // What it did not promise is not there, and the state is whole.
  std::filesystem::remove(dir_.path() + "/port");
  Program again(ServeArguments(), out());
  const std::string next = AwaitPort();
  const auto jobs =
      v1::JobService::NewStub(grpc::CreateChannel(next, grpc::InsecureChannelCredentials()));
  grpc::ClientContext list_context;
  list_context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
  v1::ListJobsResponse list;
  ASSERT_TRUE(jobs->ListJobs(&list_context, v1::ListJobsRequest(), &list).ok()) << again.output();
  EXPECT_EQ(list.jobs_size(), 0);
}

// Case: half of the log was gone, and so were acknowledged jobs; nothing was said.
TEST_F(BinaryTest, StateOlderThanWhatWasAcknowledgedEndsWithThreeUnlessAccepted) {
  const auto submit = [&](const std::string& address, const std::string& name) {
    const auto stub =
        v1::JobService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
    v1::Job job;
    return stub->SubmitJob(&context, ServiceTest::Request(name), &job).ok();
  };
  {
    Program program(ServeArguments(), out());
    const std::string address = AwaitPort();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(submit(address, "job-" + std::to_string(i)));
    program.Signal(SIGKILL);
    program.Wait();
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path() + "/state/db")) {
    if (entry.path().extension() == ".log" && entry.file_size() > 0) {
      std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
    }
  }
  std::filesystem::remove(dir_.path() + "/port");
  Program refused(ServeArguments(), out());
  EXPECT_EQ(refused.Wait(), 3);
  EXPECT_THAT(refused.output(),
              ::testing::AllOf(HasSubstr(dir_.path() + "/state/db"), HasSubstr("were acknowledged"),
                               HasSubstr("--accept-lost-state")));
  std::vector<std::string> arguments = ServeArguments();
  arguments.push_back("--accept-lost-state");
  Program accepted(arguments, out());
  const std::string address = AwaitPort();
  ASSERT_NE(address, "") << accepted.output();
  EXPECT_TRUE(submit(address, "after"));
}

TEST_F(BinaryTest, SecondOnOneStateFolderEndsWithOneAndSaysSo) {
  Program first(ServeArguments(), out());
  ASSERT_NE(AwaitPort(), "");
  Program second({"--state-dir", dir_.path() + "/state"}, dir_.path() + "/out2");
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.output(), HasSubstr(dir_.path() + "/state"));
}

TEST_F(BinaryTest, BadFlagsAreUsageErrors) {
  Program lease({"--state-dir", dir_.path() + "/s", "--lease", "ten"}, out());
  EXPECT_EQ(lease.Wait(), 2);
  EXPECT_THAT(lease.output(), HasSubstr("--lease is 'ten'"));
  // Nobody tells workers to renew more often, so a shorter lease would end healthy jobs.
  Program shorter({"--state-dir", dir_.path() + "/s", "--lease", "2s"}, out());
  EXPECT_EQ(shorter.Wait(), 2);
  EXPECT_THAT(shorter.output(), HasSubstr("workers renew every 1s"));
  for (const char* flag : {"--listen", "--metrics-listen"}) {
    Program port({"--state-dir", dir_.path() + "/s", flag, "127.0.0.1:99999"}, out());
    EXPECT_EQ(port.Wait(), 2);
    EXPECT_THAT(port.output(), HasSubstr(std::string(flag) + " is '127.0.0.1:99999'"));
    EXPECT_FALSE(std::filesystem::exists(dir_.path() + "/s"));
  }
  Program heartbeat({"--state-dir", dir_.path() + "/s", "--heartbeat", "100ms"}, out());
  EXPECT_EQ(heartbeat.Wait(), 2);
  Program unknown({"--stat-dir", "x"}, dir_.path() + "/out2");
  EXPECT_EQ(unknown.Wait(), 2);
  Program command({"rePlya", dir_.path(), "--help"}, out());
  EXPECT_EQ(command.Wait(), 2);
  EXPECT_THAT(command.output(), HasSubstr("did you mean mega-coordinator replay?"));
  Program none({}, dir_.path() + "/out3");
  EXPECT_EQ(none.Wait(), 2);
  EXPECT_THAT(none.output(), HasSubstr("--state-dir"));
}

TEST_F(BinaryTest, ReplayOfItsOwnJournalFindsNoDifference) {
  {
    Program program(ServeArguments(), out());
    ASSERT_NE(AwaitPort(), "");
    program.Signal(SIGTERM);
    ASSERT_EQ(program.Wait(), 0);
  }
  Program replay({"replay", dir_.path() + "/state"}, dir_.path() + "/out2");
  EXPECT_EQ(replay.Wait(), 0) << replay.output();
  EXPECT_THAT(replay.output(), HasSubstr(" 0 otherwise"));
}

TEST_F(BinaryTest, HelpBeginsWithAnExample) {
  Program help({"--help"}, out());
  EXPECT_EQ(help.Wait(), 0);
  EXPECT_THAT(help.output(), HasSubstr("mega-coordinator --state-dir"));
}

}  // namespace
}  // namespace mega::service
