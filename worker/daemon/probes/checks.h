// What a probe looks at, each by itself. These run in a child that may be killed at any moment, for
// any of them may hang in the kernel: a dead NFS server, a driver. `root` is put before /proc and
// /sys, so that tests can give others.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mega/v1/cluster.pb.h"

namespace mega::daemon {

struct ProbeInputs {
  std::string root;                // "": this machine
  std::vector<std::string> paths;  // folders that this worker and its ranks write to
};

// Of one check. Samples are numbers that mean something only beside those of the run before.
struct ProbeAnswer {
  std::vector<v1::Finding> findings;  // without check and time
  std::map<std::string, int64_t> samples;
};

ProbeAnswer CheckDisk(const ProbeInputs& inputs);     // space, files, mounted read-only
ProbeAnswer CheckMounts(const ProbeInputs& inputs);   // the folders can be read
ProbeAnswer CheckMemory(const ProbeInputs& inputs);   // what is left, and the pressure
ProbeAnswer CheckNic(const ProbeInputs& inputs);      // errors so far, by interface
ProbeAnswer CheckBlocked(const ProbeInputs& inputs);  // processes in D state: when they started

// By name, in the order in which they are made.
using Check = ProbeAnswer (*)(const ProbeInputs&);
const std::vector<std::pair<std::string, Check>>& AllChecks();

// The answer as the child prints it, and back. A line that is none is left out.
std::string ToText(const ProbeAnswer& answer);
ProbeAnswer FromText(const std::string& text);

// The child's program: makes the check and prints the answer. The inputs come by the environment,
// so that the paths of one worker's children do not look like another program that uses them.
int RunCheck(const std::string& name);
std::vector<std::string> CheckEnvironment(const ProbeInputs& inputs);

}  // namespace mega::daemon
