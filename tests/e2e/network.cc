#include "tests/e2e/network.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace mega::e2e {
namespace fs = std::filesystem;

namespace {

constexpr char kNowhere[] = "02:00:00:00:00:01";  // no interface has it

std::string PathOf(const std::string& program) {
  for (const char* folder : {"/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"}) {
    if (fs::exists(folder + program)) return folder + program;
  }
  return "";
}

std::string NamespaceOf(const std::string& process) {
  std::error_code error;
  return fs::read_symlink("/proc/" + process + "/ns/net", error).string();
}

std::string Port(int number) { return "host" + std::to_string(number); }

}  // namespace

std::string Network::WhyNot() {
  for (const char* program : {"ip", "nsenter", "unshare", "setpriv"}) {
    if (PathOf(program).empty()) return std::string(program) + " is not installed";
  }
  const Result made = RunProgram({PathOf("unshare"), "--net", "--ipc", PathOf("ip"), "link", "add",
                                  "bridge0", "type", "bridge"});
  return made.code == 0 ? "" : "no network namespace with a bridge can be made: " + made.out;
}

Network::Network() : bridge_(Hold(dir_, "bridge")) {
  Ip(*bridge_, {"link", "add", "bridge0", "type", "bridge"});
  Ip(*bridge_, {"link", "set", "bridge0", "up"});
}

// Shared memory stays within a host, as IPC namespaces have it.
std::unique_ptr<Process> Network::Hold(const TempDir& dir, const std::string& name) {
  auto holder = std::make_unique<Process>(
      Process::Options{.argv = {PathOf("setpriv"), "--pdeathsig", "KILL", PathOf("unshare"),
                                "--net", "--ipc", "sleep", "infinity"},
                       .output = dir.path() / name});
  const std::string ours = NamespaceOf("self");
  const auto is_there = [&] {
    const std::string found = NamespaceOf(std::to_string(holder->pid()));
    return !found.empty() && found != ours;
  };
  EXPECT_TRUE(Eventually(is_there, Seconds(10))) << holder->Output();
  return holder;
}

std::vector<std::string> Network::Enter(const Process& holder) {
  return {PathOf("nsenter"), "--target", std::to_string(holder.pid()), "--net", "--ipc", "--"};
}

void Network::Ip(const Process& holder, std::vector<std::string> arguments) const {
  std::vector<std::string> argv = Enter(holder);
  argv.push_back(PathOf("ip"));
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const Result result = RunProgram(argv);
  EXPECT_EQ(result.code, 0) << ::testing::PrintToString(arguments) << ": " << result.out;
}

void Network::AddHost(const std::string& name) {
  Host host{.holder = Hold(dir_, name), .number = static_cast<int>(hosts_.size()) + 1};
  const std::string port = Port(host.number);
  Ip(*bridge_, {"link", "add", port, "type", "veth", "peer", "name", "eth0", "netns",
                std::to_string(host.holder->pid())});
  Ip(*bridge_, {"link", "set", port, "master", "bridge0", "up"});
  Ip(*host.holder, {"link", "set", "lo", "up"});
  Ip(*host.holder,
     {"addr", "add", "10.77.0." + std::to_string(host.number) + "/24", "dev", "eth0"});
  Ip(*host.holder, {"link", "set", "eth0", "up"});
  hosts_.emplace(name, std::move(host));
}

std::string Network::AddressOf(const std::string& host) const {
  return "10.77.0." + std::to_string(At(host).number);
}

std::vector<std::string> Network::In(const std::string& host) const {
  return Enter(*At(host).holder);
}

void Network::AddDeadEnd(const std::string& host) {
  const Process& there = *At(host).holder;
  Ip(there, {"link", "add", "dead0", "type", "veth", "peer", "name", "dead1"});
  Ip(there,
     {"addr", "add", "198.51.100." + std::to_string(At(host).number) + "/32", "dev", "dead0"});
  for (const char* end : {"dead0", "dead1"}) Ip(there, {"link", "set", end, "up"});
}

void Network::Unplug(const std::string& host) {
  Ip(*bridge_, {"link", "set", Port(At(host).number), "down"});
}

void Network::Plug(const std::string& host) {
  Ip(*bridge_, {"link", "set", Port(At(host).number), "up"});
}

// Each sends the other's packets to a card that nobody has.
void Network::Cut(const std::string& a, const std::string& b) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    Ip(*At(from).holder,
       {"neigh", "replace", AddressOf(to), "lladdr", kNowhere, "nud", "permanent", "dev", "eth0"});
  }
}

void Network::Heal(const std::string& a, const std::string& b) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    Ip(*At(from).holder, {"neigh", "del", AddressOf(to), "dev", "eth0"});
  }
}

}  // namespace mega::e2e
