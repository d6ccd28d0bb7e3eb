#include "tests/layers/layers.h"

#include <functional>
#include <sstream>

#include "fmt/format.h"

namespace mega::layers {
namespace {

bool IsUnder(const std::string& path, const std::string& folder) {
  return path == folder ||
         (path.size() > folder.size() && path.compare(0, folder.size(), folder) == 0 &&
          path[folder.size()] == '/');
}

// Folders whose modules a module of the folder on the left may depend on, beside proto and base.
// The first row that holds a folder counts.
struct Allowed {
  const char* folder;
  std::vector<const char*> uses;
};
const std::vector<Allowed>& Table() {
  static const auto* table = new std::vector<Allowed>{
      {"base/tls", {"base/command_line"}},
      {"base", {}},
      {"manifest", {}},
      {"kernels", {"kernels"}},
      {"coordinator/core", {"coordinator/core", "coordinator/planner/spec", "manifest"}},
      {"coordinator/state", {"coordinator/state", "coordinator/core"}},
      {"coordinator/planner", {"coordinator/planner"}},
      {"coordinator/service",
       {"coordinator", "base/grpc_server", "base/metrics", "base/tls", "base/yaml",
        "base/command_line"}},
      {"worker/daemon",
       {"worker/daemon", "manifest", "base/grpc_server", "base/metrics", "base/tls",
        "base/command_line"}},
      {"worker/engine",
       {"worker/engine", "kernels", "base/command_line", "coordinator/planner/spec",
        "coordinator/planner/model", "coordinator/planner/layout", "coordinator/planner/schedule",
        "manifest"}},
      {"cli",
       {"cli", "coordinator/planner", "manifest", "base/tls", "base/yaml", "base/command_line"}}};
  return *table;
}

bool MayUse(const std::string& folder, const std::string& other) {
  if (other == "proto" || other == "base" || folder == "proto") return true;
  for (const Allowed& row : Table()) {
    if (!IsUnder(folder, row.folder)) continue;
    for (const char* used : row.uses)
      if (IsUnder(other, used)) return true;
    return false;
  }
  return false;
}

}  // namespace

Graph Graph::Parse(const std::string& text) {
  Graph graph;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Module module;
    std::string deps;
    if (!(words >> module.folder >> module.name) || IsUnder(module.folder, "tests")) continue;
    words >> deps;
    std::istringstream names(deps);
    for (std::string name; std::getline(names, name, ',');) module.deps.insert(name);
    graph.modules_.push_back(module);
  }
  return graph;
}

const Module* Graph::ModuleNamed(const std::string& name) const {
  for (const Module& module : modules_)
    if (module.name == name) return &module;
  return nullptr;
}

bool Graph::SpeaksFor(const std::string& name, const std::set<std::string>& inner) const {
  const Module* outer = ModuleNamed(name);
  if (outer == nullptr) return false;
  for (const std::string& dep : outer->deps) {
    const Module* module = ModuleNamed(dep);
    if (inner.count(dep) && module != nullptr && IsUnder(module->folder, outer->folder))
      return true;
  }
  return false;
}

std::string Graph::FolderOf(const std::string& path) const {
  std::string longest;
  for (const Module& module : modules_)
    if (IsUnder(path, module.folder) && module.folder.size() > longest.size())
      longest = module.folder;
  return longest;
}

std::string Graph::Complaint(const std::string& file, const std::string& include) const {
  const std::string own = FolderOf(file);
  std::set<std::string> names;  // modules of which one must be allowed
  if (include.rfind("mega/v1/", 0) == 0 || include.rfind("google/rpc/", 0) == 0) {
    names.insert(include.find(".grpc.pb.h") != std::string::npos ? "rpc" : "proto");
  } else {
    const std::string folder = FolderOf(include);
    if (folder.empty() || folder == own) return "";
    for (const Module& module : modules_)
      if (module.folder == folder) names.insert(module.name);
  }
  std::string allowed;
  for (const Module& module : modules_) {
    if (module.folder != own) continue;
    for (const std::string& dep : module.deps) {
      if (names.count(dep) || SpeaksFor(dep, names)) return "";
      allowed += (allowed.empty() ? "" : ", ") + dep;
    }
  }
  return fmt::format("{} includes {}, which is of module {}; DEPS in {}/CMakeLists.txt are: {}",
                     file, include, *names.begin(), own, allowed);
}

std::vector<std::string> Graph::Violations() const {
  std::vector<std::string> out;
  for (const Module& module : modules_) {
    for (const std::string& name : module.deps) {
      const Module* dep = ModuleNamed(name);
      if (dep == nullptr) {
        out.push_back(fmt::format("{}: DEPS name {}, which is no module", module.folder, name));
      } else if (!MayUse(module.folder, dep->folder)) {
        out.push_back(
            fmt::format("{}: may not depend on {} of {}", module.folder, name, dep->folder));
      }
    }
  }
  // Depth first; a module met again while it is still open closes a circle.
  std::map<std::string, int> state;  // 1 open, 2 done
  const std::function<void(const std::string&, const std::string&)> visit =
      [&](const std::string& name, const std::string& path) {
        if (state[name] == 2) return;
        if (state[name] == 1) {
          out.push_back("circle: " + path + name);
          return;
        }
        state[name] = 1;
        if (const Module* module = ModuleNamed(name))
          for (const std::string& dep : module->deps) visit(dep, path + name + " → ");
        state[name] = 2;
      };
  for (const Module& module : modules_) visit(module.name, "");
  return out;
}

std::vector<std::string> QuotedIncludes(const std::string& text) {
  std::vector<std::string> includes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') continue;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || line.compare(at, 7, "include") != 0) continue;
    const size_t open = line.find('"', at + 7);
    const size_t close = open == std::string::npos ? open : line.find('"', open + 1);
    if (close != std::string::npos) includes.push_back(line.substr(open + 1, close - open - 1));
  }
  return includes;
}

}  // namespace mega::layers
