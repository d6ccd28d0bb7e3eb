// Where this process can be reached over TCP.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace mega::testing {

// Local addresses, as /proc/net/tcp writes them, on which this process listens: "0100007F" is
// 127.0.0.1.
inline std::set<std::string> ListeningAddresses() {
  std::set<std::string> ours;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with("socket:[")) ours.insert(target.substr(8, target.size() - 9));
  }
  std::set<std::string> addresses;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);  // headings
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state, skip, inode;
    fields >> number >> local >> remote >> state;
    for (int i = 0; i < 5; ++i) fields >> skip;
    fields >> inode;
    if (state == "0A" && ours.contains(inode)) addresses.insert(local.substr(0, 8));
  }
  return addresses;
}

}  // namespace mega::testing
