// Ranks as real processes: forks one child a rank, carries their addresses to and fro, collects one
// report from each. The parent must not have used UCX: a fork would copy its threads' locks.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "worker/engine/distributed/communicator.h"

namespace mega::distributed {

class RankProcesses {
 public:
  // What a rank tells the parent: lines of text.
  class Report {
   public:
    explicit Report(int fd) : fd_(fd) {}
    void Line(const std::string& text) const;

   private:
    int fd_;
  };
  using Body = std::function<void(Communicator& data, const Report& report)>;

  // `timeout` is that of the communicator's operations.
  RankProcesses(int64_t ranks, absl::Duration timeout, const Body& body);
  ~RankProcesses();  // kills and reaps whoever is left

  // The next line of a rank; "" when it has ended or `within` has passed.
  std::string Line(int64_t rank, absl::Duration within = absl::Seconds(30));
  void Signal(int64_t rank, int signal);
  void Reap(int64_t rank);  // waits for its end

 private:
  struct Process {
    pid_t pid = -1;
    int to = -1;
    int from = -1;
    std::string read;
  };
  std::vector<Process> processes_;
};

}  // namespace mega::distributed
