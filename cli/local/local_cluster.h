// A coordinator and workers on loopback, children of this process: the programs of a real cluster,
// the same code path. Nothing of them outlives Stop, or this process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/local/child.h"

namespace mega::cli {

// mega-worker's --devices ends here.
inline constexpr int64_t kMostDevicesOfWorker = 4096;

struct LocalClusterOptions {
  std::string coordinator_program;
  std::string worker_program;
  std::string folder;  // state below it; logs in folder/logs
  int64_t workers = 1;
  int64_t devices = 1;                // of each worker
  std::function<bool()> interrupted;  // asked while waiting; true: give up
};

class LocalCluster {
 public:
  // Returns once the coordinator serves; workers register meanwhile. CANCELLED when interrupted.
  static absl::StatusOr<std::unique_ptr<LocalCluster>> Start(LocalClusterOptions options);
  ~LocalCluster() { Stop(absl::ZeroDuration()); }

  const std::string& address() const { return address_; }
  std::string log_folder() const { return options_.folder + "/logs"; }
  std::string worker_folder(int64_t worker) const;

  // Starts again what has died, and says so, one sentence each. An error once a process dies too
  // often to be worth it; it ends with the tail of its log.
  absl::StatusOr<std::vector<std::string>> Supervise();

  // Workers first, so that they stop their ranks, then the coordinator. What is still there after
  // `grace` is killed; so are ranks that a killed worker left behind. Idempotent.
  void Stop(absl::Duration grace);

 private:
  struct Member {
    std::string name;
    Child::Command command;
    Child child;
    int restarts = 0;
  };
  explicit LocalCluster(LocalClusterOptions options) : options_(std::move(options)) {}
  absl::Status StartCoordinator();
  absl::Status StartWorker(int64_t worker);
  absl::StatusOr<std::string> WaitForAddress(Member& member, const std::string& port_file);
  static absl::Status Died(const Member& member, int status);

  LocalClusterOptions options_;
  std::string address_;
  std::vector<Member> members_;  // the coordinator is the first
  bool stopped_ = false;
};

}  // namespace mega::cli
