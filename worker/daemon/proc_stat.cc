#include "worker/daemon/proc_stat.h"

#include <fstream>
#include <sstream>

#include "fmt/core.h"

namespace mega::daemon {
namespace {

// What follows the name: the name itself may hold blanks and brackets.
std::string FieldsAfterName(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const size_t end_of_name = line.rfind(')');
  return end_of_name == std::string::npos ? "" : line.substr(end_of_name + 1);
}

}  // namespace

int64_t StartTimeTicks(pid_t pid) {
  std::istringstream fields(FieldsAfterName(pid));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return fields ? std::strtoll(field.c_str(), nullptr, 10) : 0;
}

char ProcessState(pid_t pid) {
  std::istringstream fields(FieldsAfterName(pid));
  char state = 0;
  fields >> state;
  return state;
}

}  // namespace mega::daemon
