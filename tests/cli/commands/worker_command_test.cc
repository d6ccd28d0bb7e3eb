// Where there is no node, the command that megactl shows starts one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/cli/commands/commands_fixture.h"

namespace mega::cli {
namespace {

using ::testing::HasSubstr;

class WorkerCommandTest : public CommandsTest {
 protected:
  WorkerCommandTest() {
    coordinator_.nodes = [](const v1::ListNodesRequest&, v1::ListNodesResponse*) {
      return grpc::Status::OK;
    };
  }
  static std::string Shown(const std::string& text) {
    constexpr char kBefore[] = "start one: mega-worker ";
    const size_t begin = text.find(kBefore);
    if (begin == std::string::npos) return "";
    const size_t end = text.find('\n', begin);
    return text.substr(begin + std::strlen(kBefore), end - begin - std::strlen(kBefore));
  }
  // True once it listens: it took its flags, its folder and its addresses.
  bool Starts(const std::string& command) {
    std::vector<std::string> words = absl::StrSplit(command, ' ', absl::SkipEmpty());
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i - 1] == "--state-dir") words[i] = folder_ + "/worker";
      if (words[i - 1] == "--listen") words[i] = "127.0.0.1:0";  // tests stay on this machine
    }
    const std::string port_file = folder_ + "/port";
    std::filesystem::remove(port_file);
    words.insert(words.end(), {"--port-file", port_file});
    absl::StatusOr<Child> worker = Child::Start({.program = MEGA_BIN_DIR "/mega-worker",
                                                 .arguments = words,
                                                 .output = folder_ + "/worker.log"});
    const absl::Time deadline = absl::Now() + kDeadline;
    while (worker.ok() && !std::filesystem::exists(port_file)) {
      if (worker->WaitFor(absl::Milliseconds(10)) || absl::Now() > deadline) return false;
    }
    return worker.ok();
  }
};

TEST_F(WorkerCommandTest, StartsAWorkerOfThisMachine) {
  const std::string shown = Shown(Run({"nodes"}).err);
  EXPECT_THAT(shown, HasSubstr("--coordinator " + coordinator_.address()));
  EXPECT_TRUE(Starts(shown)) << shown << ReadFile(folder_ + "/worker.log");
  EXPECT_EQ(Shown(Run({"doctor"}).out), shown);
}

TEST_F(WorkerCommandTest, StartsAWorkerOfAnother) {
  // An address of this machine that is not loopback's.
  const std::string address = "0.0.0.0" + coordinator_.address().substr(sizeof("127.0.0.1") - 1);
  const std::string shown = Shown(RunAlone({"--coordinator", address, "--insecure", "nodes"}).err);
  EXPECT_THAT(shown, HasSubstr("--listen 0.0.0.0:7072"));
  EXPECT_TRUE(Starts(shown)) << shown << ReadFile(folder_ + "/worker.log");
}

}  // namespace
}  // namespace mega::cli
