#include "tests/layers/layers.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mega::layers {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const fs::path kSource = MEGA_SOURCE_DIR;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

Graph BuildGraph() { return Graph::Parse(ReadFile(MEGA_LAYERS_FILE)); }

// Sources of the product, relative to the tree.
std::vector<std::string> Sources() {
  std::vector<std::string> sources;
  for (const char* top : {"base", "manifest", "kernels", "coordinator", "worker", "cli"})
    for (const auto& entry : fs::recursive_directory_iterator(kSource / top)) {
      const std::string extension = entry.path().extension();
      if (extension == ".h" || extension == ".cc" || extension == ".cu")
        sources.push_back(fs::relative(entry.path(), kSource));
    }
  std::sort(sources.begin(), sources.end());
  return sources;
}

const char kSmallGraph[] =
    "proto proto \n"
    "proto rpc proto\n"
    "base base proto\n"
    "kernels kernels base\n"
    "coordinator/planner planner spec,base\n"
    "coordinator/planner/spec spec proto,base\n"
    "worker/engine/tensor tensor kernels,base\n"
    "worker/daemon daemon rpc,base\n"
    "coordinator/service service planner,base\n";

TEST(Checker, TellsAllowedIncludesFromOthers) {
  const Graph graph = Graph::Parse(kSmallGraph);
  const auto complaint = [&graph](const char* file, const char* include) {
    return graph.Complaint(file, include);
  };
  EXPECT_EQ(complaint("worker/engine/tensor/pool.cc", "worker/engine/tensor/pool.h"), "");
  EXPECT_EQ(complaint("worker/engine/tensor/pool.cc", "kernels/matmul.h"), "");
  EXPECT_EQ(complaint("worker/engine/tensor/pool.cc", "absl/status/status.h"), "");
  EXPECT_EQ(complaint("coordinator/planner/spec/spec.h", "mega/v1/job.pb.h"), "");
  EXPECT_EQ(complaint("worker/daemon/session.cc", "mega/v1/worker.grpc.pb.h"), "");
  EXPECT_EQ(complaint("coordinator/planner/planner.cc", "coordinator/planner/spec/spec.h"), "");
  EXPECT_THAT(complaint("coordinator/planner/spec/spec.cc", "coordinator/planner/planner.h"),
              HasSubstr("which is of module planner"));
  EXPECT_THAT(complaint("worker/engine/tensor/pool.cc", "mega/v1/job.pb.h"), HasSubstr("proto"));
  EXPECT_THAT(complaint("coordinator/planner/spec/spec.cc", "mega/v1/job.grpc.pb.h"),
              HasSubstr("rpc"));
  EXPECT_THAT(complaint("kernels/matmul.cc", "worker/engine/tensor/pool.h"), HasSubstr("tensor"));
  // A module speaks for those in its own folder that it depends on …
  EXPECT_EQ(complaint("coordinator/service/rpc.cc", "coordinator/planner/spec/spec.h"), "");
  // … and for no others.
  EXPECT_THAT(complaint("coordinator/planner/planner.cc", "mega/v1/job.pb.h"), HasSubstr("proto"));
}

TEST(Checker, FindsForbiddenDirectionsAndCircles) {
  EXPECT_THAT(Graph::Parse(kSmallGraph).Violations(), IsEmpty());
  EXPECT_THAT(Graph::Parse("kernels kernels base\nbase base kernels\n").Violations(),
              ElementsAre("base: may not depend on kernels of kernels",
                          "circle: kernels → base → kernels"));
  EXPECT_THAT(
      Graph::Parse("worker/daemon daemon tensor\nworker/engine/tensor tensor \n").Violations(),
      ElementsAre(HasSubstr("worker/daemon: may not depend on tensor")));
  EXPECT_THAT(Graph::Parse("base base nothing\n").Violations(),
              ElementsAre("base: DEPS name nothing, which is no module"));
}

TEST(Checker, ReadsQuotedIncludesOnly) {
  EXPECT_THAT(QuotedIncludes("#include <vector>\n#include \"a/b.h\"\n  #  include \"c.h\"  // d\n"
                             "// #include \"no.h\"\nconst char* s = \"#include\";\n"),
              ElementsAre("a/b.h", "c.h"));
}

TEST(Layers, EveryModuleDependsDownwardsOnly) {
  const Graph graph = BuildGraph();
  EXPECT_GT(graph.modules().size(), 25u);
  EXPECT_THAT(graph.Violations(), IsEmpty());
}

TEST(Layers, EveryIncludeIsOfTheOwnModuleOrItsDeps) {
  const Graph graph = BuildGraph();
  int includes = 0;
  std::vector<std::string> complaints;
  for (const std::string& file : Sources()) {
    if (graph.FolderOf(file).empty()) {
      complaints.push_back(file + " is in no module");
      continue;
    }
    for (const std::string& include : QuotedIncludes(ReadFile(kSource / file))) {
      const std::string complaint = graph.Complaint(file, include);
      if (!complaint.empty()) complaints.push_back(complaint);
      ++includes;
    }
  }
  EXPECT_EQ(absl::StrJoin(complaints, "\n"), "");
  EXPECT_GT(includes, 300);
}

// Decisions are pure: what they need comes in as arguments.
TEST(Layers, CoreScheduleAndLeaseTouchNoClockThreadOrNetwork) {
  for (const std::string& file : Sources()) {
    const bool pure = file.rfind("coordinator/core/", 0) == 0 ||
                      file.rfind("coordinator/planner/", 0) == 0 ||
                      file.rfind("worker/daemon/lease/", 0) == 0;
    if (!pure) continue;
    const std::string text = ReadFile(kSource / file);
    for (const char* forbidden :
         {"#include <thread>", "#include <mutex>", "#include \"grpcpp/", "#include <grpcpp/",
          "#include \"rocksdb/", "#include <random>", "absl::Now(", "system_clock", "steady_clock"})
      EXPECT_THAT(text, ::testing::Not(HasSubstr(forbidden))) << file;
  }
}

// It takes ten seconds to compile (docs/decisions/0006).
TEST(Layers, OneModuleAloneIncludesCli11) {
  int includers = 0;
  for (const std::string& file : Sources()) {
    const std::string text = ReadFile(kSource / file);
    if (text.find("include <CLI/") == std::string::npos &&
        text.find("include \"CLI/") == std::string::npos)
      continue;
    ++includers;
    EXPECT_EQ(file.rfind("base/command_line/", 0), 0u)
        << file << " includes CLI11; declare options with base/command_line/command_line.h";
    EXPECT_EQ(fs::path(file).extension(), ".cc") << file << " hands CLI11 on to who includes it";
  }
  EXPECT_GT(includers, 0);
}

TEST(Layers, EveryModuleHasAReadme) {
  const Graph graph = BuildGraph();
  std::set<std::string> without;
  for (const Module& module : graph.modules())
    if (module.folder != "proto" && !fs::exists(kSource / module.folder / "README.md"))
      without.insert(module.folder);
  EXPECT_THAT(without, IsEmpty());
}

TEST(Drift, Report) {
  std::vector<std::string> report;
  for (const std::string& file : Sources()) {
    const std::string text = ReadFile(kSource / file);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    if (lines > 400) report.push_back(fmt::format("{}: {} lines", file, lines));
  }
  const Graph graph = BuildGraph();
  for (const Module& module : graph.modules()) {
    const fs::path readme = kSource / module.folder / "README.md";
    if (!fs::exists(readme)) continue;
    const std::string text = ReadFile(readme);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    if (lines > 60) report.push_back(fmt::format("{}/README.md: {} lines", module.folder, lines));
  }
  for (const std::string& line : report) std::cout << "drift: " << line << '\n';
}

}  // namespace
}  // namespace mega::layers
