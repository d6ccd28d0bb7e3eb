// The systemd units of the guide: their lines start the programs, and SIGTERM to the main process
// alone, as KillMode=mixed sends it, ends them as the guide says.
#include <csignal>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "tests/docs/markdown.h"
#include "tests/e2e/process.h"

namespace mega::docs {
namespace {

// The one line of the guide that starts `program`, cut into words.
std::vector<std::string> ExecStart(const std::string& program) {
  std::vector<std::string> words;
  const std::string begin = "ExecStart=/usr/local/bin/";
  for (const Block& block : ReadBlocks(MEGA_SOURCE_DIR, "docs/guide/installation.md")) {
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(block.text, '\n'))) {
      if (!line.starts_with(begin + program + " ")) continue;
      EXPECT_TRUE(words.empty()) << program << " is started twice";
      words = absl::StrSplit(line.substr(begin.size()), ' ');
    }
  }
  return words;
}

std::vector<std::string> Here(std::vector<std::string> words, const e2e::TempDir& dir,
                              const std::string& coordinator) {
  words[0] = MEGA_BIN_DIR "/" + words[0];
  for (std::string& word : words) {
    if (word.starts_with("0.0.0.0:")) word = "127.0.0.1:0";
    absl::StrReplaceAll({{"/var/lib/mega", dir.path().string()}, {"HOST:7070", coordinator}},
                        &word);
  }
  return words;
}

TEST(Units, StartAndLeaveOnSigterm) {
  const e2e::TempDir dir;
  std::vector<std::string> coordinator = ExecStart("mega-coordinator");
  const std::vector<std::string> worker = ExecStart("mega-worker");
  ASSERT_FALSE(coordinator.empty() || worker.empty());
  const auto port = dir.path() / "port";
  coordinator.insert(coordinator.end(), {"--port-file", port});
  e2e::Process serving({.argv = Here(coordinator, dir, ""), .output = dir.path() / "c.log"});
  ASSERT_TRUE(e2e::Eventually([&] { return std::filesystem::exists(port); }, e2e::Seconds(30)))
      << serving.Output();
  const std::string address(absl::StripAsciiWhitespace(e2e::ReadFile(port)));
  e2e::Process working({.argv = Here(worker, dir, address), .output = dir.path() / "w.log"});
  const std::vector<std::string> nodes = {
      MEGA_BIN_DIR "/megactl", "--coordinator", address, "nodes", "-o", "name"};
  EXPECT_TRUE(
      e2e::Eventually([&] { return !e2e::RunProgram(nodes).out.empty(); }, e2e::Seconds(30)))
      << working.Output();
  for (e2e::Process* process : {&working, &serving}) {
    process->Signal(SIGTERM);
    const auto exit = process->Wait(e2e::Seconds(20));
    ASSERT_TRUE(exit.has_value()) << process->Output();
    EXPECT_EQ(exit->code, 0) << process->Output();
  }
}

}  // namespace
}  // namespace mega::docs
