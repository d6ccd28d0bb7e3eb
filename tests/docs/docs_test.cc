// The README and the guide are typed as they stand: commands run against real programs, job files
// are planned and checked by a coordinator. Only addresses, folders and names that stand for the
// reader's own (HOST, JOB) are replaced, and jobs are cut to a few steps. A block that is in no way
// tried fails the test.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <regex>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "tests/docs/markdown.h"
#include "tests/e2e/cluster.h"

namespace mega::docs {
namespace {

namespace fs = std::filesystem;

enum class How {
  kRun,      // in a shell, as it stands
  kServe,    // the same in the background: a program that serves
  kJobFile,  // planned, and checked by a coordinator
  kSection,  // of a job file: the same, at the end of the example's spec
  kSyntax,   // only parsed, and the files it names must be there
};

struct Example {
  const char* file;
  const char* begins;
  How how;
};
constexpr Example kExamples[] = {
    // Installs packages and builds everything.
    {"README.md", "deploy/quickstart", How::kSyntax},
    {"README.md", "export PATH=", How::kRun},
    {"docs/guide/first-run.md", "build/release/bin/megactl run", How::kRun},
    {"docs/guide/job-file.md", "apiVersion:", How::kJobFile},
    {"docs/guide/job-file.md", "megactl plan", How::kRun},
    {"docs/guide/installation.md", "tar -C build/release/bin", How::kRun},
    // Installs packages and makes a user.
    {"docs/guide/installation.md", "apt-get update", How::kSyntax},
    {"docs/guide/installation.md", "taskset -c 0 mega-worker", How::kRun},
    {"docs/guide/cluster.md", "mega-coordinator ", How::kServe},
    {"docs/guide/cluster.md", "mega-worker ", How::kServe},
    {"docs/guide/cluster.md", "export MEGACTL_COORDINATOR", How::kRun},
    {"docs/guide/checkpoints.md", "megactl checkpoints", How::kRun},
    {"docs/guide/megactl.md", "J=$(megactl submit", How::kRun},
    {"docs/guide/monitoring.md", "megactl steps", How::kRun},
    {"docs/guide/recovery.md", "recovery:", How::kSection},
    {"docs/guide/health.md", "health:", How::kSection},
    {"docs/guide/security.md", "megactl pki init", How::kRun},
    {"docs/guide/security.md", "mega-coordinator ", How::kServe},
    {"docs/guide/security.md", "mega-worker ", How::kServe},
    {"docs/guide/security.md", "export MEGACTL_COORDINATOR", How::kRun},
    {"docs/guide/security.md", "cat >access.yaml", How::kRun},
    {"docs/guide/queue.md", "scheduling:", How::kSection},
    // Need a container builder and a cluster.
    {"docs/guide/kubernetes.md", "docker build", How::kSyntax},
    {"docs/guide/kubernetes.md", "POD=", How::kSyntax},
};

std::vector<std::string> Files() {
  std::vector<std::string> files = {"README.md"};
  for (const auto& entry : fs::directory_iterator(MEGA_SOURCE_DIR "/docs/guide"))
    files.push_back("docs/guide/" + entry.path().filename().string());
  std::sort(files.begin() + 1, files.end());
  return files;
}

const Example* ExampleOf(const Block& block) {
  for (const Example& example : kExamples)
    if (block.file == example.file && block.text.starts_with(example.begins)) return &example;
  return nullptr;
}

std::string Where(const Block& block) { return block.file + ":" + std::to_string(block.line); }

// A port that is free now and that no program takes by asking for any: below those ranges.
int FreePort() {
  std::mt19937 random{std::random_device()()};
  while (true) {
    const int port = 20'000 + static_cast<int>(random() % 10'000);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool is_free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    close(fd);
    if (is_free) return port;
  }
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

class DocsTest : public testing::TestWithParam<std::string> {
 protected:
  DocsTest() {
    // As after a build, seen from the root of the sources.
    fs::create_directories(folder() / "build/release");
    fs::create_symlink(MEGA_BIN_DIR, folder() / "build/release/bin");
    fs::create_directories(folder() / "deploy");
    fs::copy(MEGA_SOURCE_DIR "/deploy/examples", folder() / "deploy/examples",
             fs::copy_options::recursive);
    fs::copy_file(MEGA_SOURCE_DIR "/deploy/packages.txt", folder() / "deploy/packages.txt");
    std::string text;
    for (int i = 0; i < 2000; ++i) text += "line " + std::to_string(i * i % 977) + " of a corpus\n";
    e2e::WriteFile(folder() / "corpus.txt", text);
    for (const Block& block : ReadBlocks(MEGA_SOURCE_DIR, "docs/guide/job-file.md")) {
      if (block.language != "yaml") continue;
      e2e::WriteFile(folder() / "job.yaml",
                     std::regex_replace(block.text, std::regex("steps: [0-9]+"), "steps: 3"));
    }
  }
  const fs::path& folder() const { return dir_.path(); }

  std::string ForThisMachine(std::string text, const std::string& address) const {
    for (const char* host : {"127.0.0.1:7070", "0.0.0.0:7070", "HOST:7070"})
      text = Replaced(text, host, address);
    text = std::regex_replace(text, std::regex("0\\.0\\.0\\.0:707[0-9]"), "127.0.0.1:0");
    text = Replaced(text, "/tmp/mega/", (folder() / "state/").string());
    text = Replaced(text, "/var/lib/mega/", (folder() / "state/").string());
    text = std::regex_replace(text, std::regex("\\bJOB\\b"), "small");
    text = std::regex_replace(text, std::regex("\\bSTEP\\b"), "3");  // the last of job.yaml
    text = std::regex_replace(text, std::regex("\\bFOLDER\\b"),
                              "$(ls -d checkpoints/*/step-* | head -1)");
    text = std::regex_replace(text, std::regex("training\\.steps=[0-9]+"), "training.steps=4");
    return Replaced(text, "shakespeare.yaml",
                    "shakespeare.yaml --set training.steps=2 --set training.global_batch_size=4 "
                    "--set optimizer.warmup_steps=1 --set training.eval_steps=1");
  }

  // Stops at the first command that fails; what it started in the background ends with it.
  e2e::Result Run(const std::string& script, const std::string& address) {
    const fs::path file = folder() / "typed.sh";
    e2e::WriteFile(file,
                   "PS4='+ after $SECONDS s: '; set -euxo pipefail\n"
                   "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n"
                   "export PATH=" MEGA_BIN_DIR ":$PATH\nA=" +
                       address + "\n" + script);
    return e2e::RunProgram({"/usr/bin/timeout", "--kill-after=5", "240", "/bin/bash", file},
                           e2e::Seconds(260), folder());
  }

  e2e::TempDir dir_;
};

TEST_P(DocsTest, EveryBlockIsTriedAndWorks) {
  const std::string address = "127.0.0.1:" + std::to_string(FreePort());
  std::string script;
  bool is_serving = false;
  bool starts_its_own = false;
  for (const Block& block : ReadBlocks(MEGA_SOURCE_DIR, GetParam())) {
    if (block.language.empty()) continue;  // something shown
    EXPECT_THAT(block.language, testing::AnyOf("sh", "yaml")) << Where(block);
    const Example* example = ExampleOf(block);
    if (example == nullptr) {
      ADD_FAILURE() << Where(block) << ": this block is not tried; give it a line in kExamples";
      continue;
    }
    const std::string text = ForThisMachine(block.text, address);
    switch (example->how) {
      case How::kRun:
        if (std::exchange(is_serving, false))
          script +=
              "until megactl --coordinator $A nodes -o name 2>/dev/null | grep -q .; do "
              "sleep 0.1; done\n";
        starts_its_own = starts_its_own || text.find("mega-coordinator --listen") != text.npos ||
                         text.find("megactl run") != text.npos;
        script += text;
        break;
      case How::kServe:
        is_serving = starts_its_own = true;
        script += "{ exec " + text + "} &\n";
        break;
      case How::kJobFile:
      case How::kSection: {
        std::string job = text;
        if (example->how == How::kSection) {
          job = e2e::ReadFile(folder() / "deploy/examples/shakespeare.yaml");
          for (const auto line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n'))
            absl::StrAppend(&job, "  ", line, "\n");
        }
        e2e::WriteFile(folder() / "shown.yaml", job);
        script +=
            "megactl plan shown.yaml --nodes 1 --devices 2\n"
            "megactl submit --dry-run shown.yaml\n";
        break;
      }
      case How::kSyntax: {
        const fs::path file = folder() / "parsed.sh";
        e2e::WriteFile(file, block.text);
        const e2e::Result parsed = e2e::RunProgram({"/bin/bash", "-n", file});
        EXPECT_EQ(parsed.code, 0) << Where(block) << ": " << parsed.out;
        const std::regex path("\\bdeploy/[A-Za-z0-9/_.-]*[A-Za-z0-9]");
        for (std::sregex_iterator at(block.text.begin(), block.text.end(), path), end; at != end;
             ++at)
          EXPECT_TRUE(fs::exists(fs::path(MEGA_SOURCE_DIR) / at->str()))
              << Where(block) << ": " << at->str();
        std::printf("only parsed: %s\n", Where(block).c_str());
        break;
      }
    }
  }
  if (script.empty()) return;
  if (!starts_its_own) {
    // The reader's own cluster, with a job that has ended.
    script =
        "mega-coordinator --listen $A --state-dir state/coordinator >coordinator.log 2>&1 &\n"
        "mega-worker --coordinator $A --state-dir state/worker --devices 2 >worker.log 2>&1 &\n"
        "export MEGACTL_COORDINATOR=$A\n"
        "until megactl nodes -o name 2>/dev/null | grep -q .; do sleep 0.1; done\n"
        "megactl wait $(megactl submit -q job.yaml --set "
        "checkpoint.directory=$PWD/checkpoints)\n" +
        script;
  }
  const e2e::Result result = Run(script, address);
  EXPECT_EQ(result.code, 0) << script << "\n" << result.out;
}

INSTANTIATE_TEST_SUITE_P(Guide, DocsTest, testing::ValuesIn(Files()), [](const auto& info) {
  return std::regex_replace(info.param, std::regex("[^A-Za-z]"), "_");
});

TEST(Docs, EveryExampleIsInThem) {
  std::vector<Block> blocks;
  for (const std::string& file : Files()) {
    const std::vector<Block> more = ReadBlocks(MEGA_SOURCE_DIR, file);
    blocks.insert(blocks.end(), more.begin(), more.end());
  }
  for (const Example& example : kExamples) {
    const auto count = std::count_if(blocks.begin(), blocks.end(), [&](const Block& block) {
      return block.file == example.file && block.text.starts_with(example.begins);
    });
    EXPECT_EQ(count, 1) << example.file << ": " << example.begins;
  }
}

}  // namespace
}  // namespace mega::docs
