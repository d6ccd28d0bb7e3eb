#include "worker/daemon/ledger.h"

#include <algorithm>

namespace mega::daemon {

bool Ledger::Accept(const v1::Command& command) {
  MutexLock lock(mu_);
  if (command.seq() <= record_.last_command_seq()) return false;
  record_.set_last_command_seq(command.seq());
  const v1::StartRanks& start = command.start_ranks();
  for (const int64_t rank : start.ranks()) {
    *record_.add_ranks()->mutable_rank() =
        RankKey{start.job_uid(), start.attempt(), start.epoch(), rank}.ToProto();
  }
  return true;
}

void Ledger::SetDurable(int64_t seq) {
  MutexLock lock(mu_);
  durable_seq_ = seq;
}

int64_t Ledger::durable_seq() const {
  MutexLock lock(mu_);
  return durable_seq_;
}

void Ledger::SetProcess(const RankKey& key, int64_t pid, int64_t start_time_ticks) {
  MutexLock lock(mu_);
  for (v1::RecordedRank& rank : *record_.mutable_ranks()) {
    if (RankKey::From(rank.rank()) != key) continue;
    rank.set_pid(pid);
    rank.set_start_time_ticks(start_time_ticks);
  }
}

void Ledger::Ready(const RankKey& key, const std::string& address) {
  MutexLock lock(mu_);
  ready_[key] = address;
}

void Ledger::Connected(const std::string& job_uid, int64_t epoch) {
  MutexLock lock(mu_);
  std::erase_if(ready_, [&](const auto& entry) {
    return entry.first.job_uid == job_uid && entry.first.epoch == epoch;
  });
}

void Ledger::Owe(const RankKey& key, int64_t step, const v1::WorkerMessage& message) {
  MutexLock lock(mu_);
  owed_[{key, step}] = message;
}

void Ledger::Committed(const std::string& job_uid, int64_t epoch, int64_t step) {
  MutexLock lock(mu_);
  std::erase_if(owed_, [&](const auto& entry) {
    const auto& [key, owed_step] = entry.first;
    return key.job_uid == job_uid && key.epoch == epoch && owed_step <= step;
  });
}

void Ledger::Exited(const RankKey& key, const v1::ExitStatus& exit, absl::Duration now) {
  MutexLock lock(mu_);
  auto& ranks = *record_.mutable_ranks();
  ranks.erase(std::remove_if(
                  ranks.begin(), ranks.end(),
                  [&](const v1::RecordedRank& rank) { return RankKey::From(rank.rank()) == key; }),
              ranks.end());
  ready_.erase(key);
  std::erase_if(owed_, [&](const auto& entry) { return entry.first.first == key; });
  auto& exits = *record_.mutable_exited();
  v1::RankExited& exited = *exits.Add();
  *exited.mutable_rank() = key.ToProto();
  *exited.mutable_exit() = exit;
  exit_sent_[key] = now;
  if (exits.size() > kMaxExits) {
    exit_sent_.erase(RankKey::From(exits[0].rank()));
    exits.erase(exits.begin());
  }
}

void Ledger::Heard(absl::Duration sent) {
  MutexLock lock(mu_);
  google::protobuf::RepeatedPtrField<v1::RankExited> unheard;
  for (v1::RankExited& exited : *record_.mutable_exited()) {
    const auto it = exit_sent_.find(RankKey::From(exited.rank()));
    if (it != exit_sent_.end() && it->second < sent) {
      exit_sent_.erase(it);
    } else {
      unheard.Add(std::move(exited));
    }
  }
  record_.mutable_exited()->Swap(&unheard);
}

std::vector<v1::WorkerMessage> Ledger::Introduce(const v1::Node& node, absl::Duration now) {
  MutexLock lock(mu_);
  std::vector<v1::WorkerMessage> words(1);
  v1::Hello& hello = *words.front().mutable_hello();
  *hello.mutable_node() = node;
  for (const v1::RecordedRank& rank : record_.ranks()) *hello.add_running() = rank.rank();
  hello.set_last_command_seq(durable_seq_);
  const size_t tail_bytes =
      kMaxHelloTails / static_cast<size_t>(std::max(1, record_.exited_size()));
  for (const v1::RankExited& exited : record_.exited()) {
    v1::RankExited& told = *hello.add_exited();
    told = exited;
    std::string& tail = *told.mutable_exit()->mutable_stderr_tail();
    if (tail.size() > tail_bytes) tail.erase(0, tail.size() - tail_bytes);
    exit_sent_[RankKey::From(exited.rank())] = now;
  }
  for (const auto& [key, address] : ready_) {
    v1::RankReady& ready = *words.emplace_back().mutable_rank_ready();
    *ready.mutable_rank() = key.ToProto();
    ready.set_address(address);
  }
  for (const auto& [key, message] : owed_) words.push_back(message);
  return words;
}

v1::WorkerRecord Ledger::Record() const {
  MutexLock lock(mu_);
  return record_;
}

}  // namespace mega::daemon
