// The module graph of the build, and what it allows.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace mega::layers {

struct Module {
  std::string folder;
  std::string name;
  std::set<std::string> deps;
};

class Graph {
 public:
  // Lines of "folder name dep,dep"; a folder may hold a library and binaries. What serves tests
  // alone is left out: it may include everything.
  static Graph Parse(const std::string& text);

  const std::vector<Module>& modules() const { return modules_; }
  // Longest folder that holds `path`, or empty.
  std::string FolderOf(const std::string& path) const;
  // Why `file` may not include `include` (the text between the quotes), or empty.
  std::string Complaint(const std::string& file, const std::string& include) const;
  // DEPS that leave the folders a module may use, and circles.
  std::vector<std::string> Violations() const;

 private:
  const Module* ModuleNamed(const std::string& name) const;
  // Module `name` depends on one of `inner` that lies in a folder inside its own: its headers show
  // that one to everybody (kernels shows kernels/device).
  bool SpeaksFor(const std::string& name, const std::set<std::string>& inner) const;
  std::vector<Module> modules_;
};

// The quoted includes of a source text, in order.
std::vector<std::string> QuotedIncludes(const std::string& text);

}  // namespace mega::layers
