#include "tests/worker/engine/distributed/processes/rank_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "absl/strings/escaping.h"
#include "base/check.h"
#include "worker/engine/distributed/ucx.h"

namespace mega::distributed {
namespace {

void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote <= 0) _exit(3);
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
}

std::string ReadLine(int fd) {
  std::string line;
  for (char c = 0; read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

void RunRank(int64_t rank, int64_t ranks, absl::Duration timeout, int to_parent, int from_parent,
             const RankProcesses::Body& body) {
  v1::RankRef self;
  self.set_job_uid("processes");
  self.set_attempt(1);
  self.set_rank(rank);
  auto transport = UcxTransport::Create(self);
  MEGA_CHECK_OK(transport);
  const RankProcesses::Report report(to_parent);
  report.Line(absl::Base64Escape((*transport)->address()));
  google::protobuf::RepeatedPtrField<v1::RankAddress> addresses;
  CommunicatorOptions options{.name = "data", .timeout = timeout};
  for (int64_t peer = 0; peer < ranks; ++peer) {
    v1::RankAddress& address = *addresses.Add();
    address.set_rank(peer);
    MEGA_CHECK(absl::Base64Unescape(ReadLine(from_parent), address.mutable_address()));
    options.ranks.push_back(peer);
  }
  MEGA_CHECK_OK((*transport)->Connect(addresses));
  auto data = (*transport)->MakeCommunicator(options);
  MEGA_CHECK_OK(data);
  body(**data, report);
}

}  // namespace

void RankProcesses::Report::Line(const std::string& text) const { WriteAll(fd_, text + "\n"); }

RankProcesses::RankProcesses(int64_t ranks, absl::Duration timeout, const Body& body)
    : processes_(ranks) {
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::array<int, 2> pair;
    MEGA_CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    Process& process = processes_[rank];
    process.pid = fork();
    MEGA_CHECK_GE(process.pid, 0);
    if (process.pid == 0) {
      for (const Process& other : processes_)
        if (other.from >= 0) close(other.from);
      close(pair[0]);
      RunRank(rank, ranks, timeout, pair[1], pair[1], body);
      _exit(0);
    }
    close(pair[1]);
    process.to = process.from = pair[0];
  }
  std::string all;
  for (int64_t rank = 0; rank < ranks; ++rank) all += Line(rank) + "\n";
  for (const Process& process : processes_) WriteAll(process.to, all);
}

RankProcesses::~RankProcesses() {
  for (int64_t rank = 0; rank < static_cast<int64_t>(processes_.size()); ++rank) {
    Signal(rank, SIGKILL);
    Reap(rank);
    close(processes_[rank].from);
  }
}

std::string RankProcesses::Line(int64_t rank, absl::Duration within) {
  Process& process = processes_[rank];
  const absl::Time deadline = absl::Now() + within;
  while (true) {
    const size_t end = process.read.find('\n');
    if (end != std::string::npos) {
      std::string line = process.read.substr(0, end);
      process.read.erase(0, end + 1);
      return line;
    }
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    pollfd waiting{process.from, POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) <= 0) return "";
    std::array<char, 4096> buffer;
    const ssize_t got = read(process.from, buffer.data(), buffer.size());
    if (got <= 0) return "";
    process.read.append(buffer.data(), static_cast<size_t>(got));
  }
}

void RankProcesses::Signal(int64_t rank, int signal) {
  if (processes_[rank].pid > 0) kill(processes_[rank].pid, signal);
}

void RankProcesses::Reap(int64_t rank) {
  if (processes_[rank].pid > 0) waitpid(processes_[rank].pid, nullptr, 0);
  processes_[rank].pid = -1;
}

}  // namespace mega::distributed
