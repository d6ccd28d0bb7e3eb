// Hosts of one network on this machine, each a network namespace with one interface, on a bridge in
// a namespace of its own. Nothing of the machine's own network is touched or reached.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/process.h"

namespace mega::e2e {

class Network {
 public:
  // Why there can be none here (no root, no `ip`); empty: there can be.
  static std::string WhyNot();

  Network();

  void AddHost(const std::string& host);
  bool Has(const std::string& host) const { return hosts_.contains(host); }
  // 10.77.0.N, in the order of AddHost.
  std::string AddressOf(const std::string& host) const;
  // What stands before the words of a program that is to run there. The pid stays the program's.
  std::vector<std::string> In(const std::string& host) const;

  // One more interface of the host, up and with an address, that nobody else can reach.
  void AddDeadEnd(const std::string& host);
  // The link goes down at both ends, as when a cable is pulled, and comes back.
  void Unplug(const std::string& host);
  void Plug(const std::string& host);
  // What the two send each other is lost without a word to either, until Heal.
  void Cut(const std::string& a, const std::string& b);
  void Heal(const std::string& a, const std::string& b);

 private:
  struct Host {
    std::unique_ptr<Process> holder;  // keeps the namespace
    int number = 0;
  };
  static std::unique_ptr<Process> Hold(const TempDir& dir, const std::string& name);
  static std::vector<std::string> Enter(const Process& holder);
  void Ip(const Process& holder, std::vector<std::string> arguments) const;
  const Host& At(const std::string& host) const { return hosts_.at(host); }

  TempDir dir_{false};
  std::unique_ptr<Process> bridge_;
  std::map<std::string, Host> hosts_;
};

}  // namespace mega::e2e
