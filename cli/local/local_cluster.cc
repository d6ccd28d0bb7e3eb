#include "cli/local/local_cluster.h"

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"

namespace mega::cli {
namespace {

constexpr absl::Duration kStartDeadline = absl::Seconds(20);
constexpr absl::Duration kPoll = absl::Milliseconds(2);
constexpr absl::Duration kAfterKill = absl::Seconds(5);
constexpr int kMostRestarts = 5;
constexpr size_t kTailBytes = 2048;

}  // namespace

std::string LocalCluster::worker_folder(int64_t worker) const {
  return fmt::format("{}/worker-{}", options_.folder, worker + 1);
}

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(LocalClusterOptions options) {
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(std::move(options)));
  std::error_code error;
  std::filesystem::create_directories(cluster->log_folder(), error);
  if (error) return ErrnoStatus(error.value(), cluster->log_folder());
  AdoptOrphans();
  MEGA_RETURN_IF_ERROR(cluster->StartCoordinator());
  for (int64_t worker = 0; worker < cluster->options_.workers; ++worker)
    MEGA_RETURN_IF_ERROR(cluster->StartWorker(worker));
  return cluster;
}

absl::Status LocalCluster::StartCoordinator() {
  const std::string port_file = options_.folder + "/coordinator.address";
  Child::Command command{
      .program = options_.coordinator_program,
      .arguments = {"serve", "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0",
                    "--state-dir=" + options_.folder + "/coordinator", "--port-file=" + port_file,
                    "--exit-on-stdin-eof"},
      .output = log_folder() + "/coordinator.log"};
  MEGA_ASSIGN_OR_RETURN(Child child, Child::Start(command));
  members_.push_back({"mega-coordinator", std::move(command), std::move(child)});
  MEGA_ASSIGN_OR_RETURN(address_, WaitForAddress(members_.back(), port_file));
  // Started again, it must be found where it was.
  members_.back().command.arguments[1] = "--listen=" + address_;
  return absl::OkStatus();
}

absl::Status LocalCluster::StartWorker(int64_t worker) {
  const std::string name = fmt::format("worker-{}", worker + 1);
  Child::Command command{
      .program = options_.worker_program,
      .arguments = {"--coordinator=" + address_, "--node=" + name,
                    "--state-dir=" + worker_folder(worker),
                    fmt::format("--devices={}", options_.devices), "--listen=127.0.0.1:0",
                    "--metrics-listen=127.0.0.1:0", "--exit-on-stdin-eof"},
      .output = fmt::format("{}/{}.log", log_folder(), name)};
  MEGA_ASSIGN_OR_RETURN(Child child, Child::Start(command));
  members_.push_back({"mega-worker " + name, std::move(command), std::move(child)});
  return absl::OkStatus();
}

absl::StatusOr<std::string> LocalCluster::WaitForAddress(Member& member,
                                                         const std::string& port_file) {
  const absl::Time deadline = absl::Now() + kStartDeadline;
  while (true) {
    std::ifstream file(port_file);
    std::string address;
    if (std::getline(file, address) && !address.empty()) return address;
    if (const auto status = member.child.Poll()) return Died(member, *status);
    if (options_.interrupted && options_.interrupted()) return absl::CancelledError("interrupted");
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(
          fmt::format("{} did not serve within {} s; its log: {}", member.name,
                      absl::ToInt64Seconds(kStartDeadline), member.command.output));
    }
    absl::SleepFor(kPoll);
  }
}

absl::Status LocalCluster::Died(const Member& member, int status) {
  return Internal("{} ended with {}; its log {} ends:\n{}", member.name, DescribeWaitStatus(status),
                  member.command.output, TailOfFile(member.command.output, kTailBytes));
}

absl::StatusOr<std::vector<std::string>> LocalCluster::Supervise() {
  std::vector<std::string> told;
  std::vector<pid_t> own;
  for (const Member& member : members_) own.push_back(member.child.pid());
  // Ranks of a worker that was killed are ours now; as zombies they would look alive to the next.
  ReapOrphans(own);
  for (Member& member : members_) {
    const std::optional<int> status = member.child.Poll();
    if (!status.has_value()) continue;
    if (++member.restarts > kMostRestarts) return Died(member, *status);
    MEGA_ASSIGN_OR_RETURN(member.child, Child::Start(member.command));
    told.push_back(fmt::format("{} ended with {}; started it again", member.name,
                               DescribeWaitStatus(*status)));
  }
  return told;
}

void LocalCluster::Stop(absl::Duration grace) {
  if (std::exchange(stopped_, true)) return;
  const absl::Time deadline = absl::Now() + grace;
  const auto end = [&](Member& member) {
    if (member.child.WaitFor(deadline - absl::Now())) return;
    member.child.Kill();
    member.child.WaitFor(kAfterKill);
  };
  if (members_.empty()) return;
  for (size_t i = 1; i < members_.size(); ++i) members_[i].child.Ask();
  for (size_t i = 1; i < members_.size(); ++i) end(members_[i]);
  members_[0].child.Ask();
  end(members_[0]);
  members_.clear();
  EndAllDescendants(kAfterKill);
}

}  // namespace mega::cli
