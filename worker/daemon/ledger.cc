#include "worker/daemon/ledger.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

namespace mega::daemon {
namespace {

void Shorten(std::string& tail, size_t bytes) {
  if (tail.size() > bytes) tail.erase(0, tail.size() - bytes);
}

}  // namespace

absl::StatusOr<bool> Ledger::Join(const std::string& cluster_id) {
  MutexLock lock(mu_);
  if (cluster_id.empty() || cluster_id == record_.cluster_id()) return false;
  if (record_.cluster_id().empty()) {  // the first that says so; what is kept is of this one
    record_.set_cluster_id(cluster_id);
    return false;
  }
  if (!record_.ranks().empty()) {
    return FailedPrecondition(
        "{} ranks of cluster {} run here, and the coordinator is of cluster {}; start the "
        "coordinator on its own state folder, or stop this worker and give it a new one",
        record_.ranks_size(), record_.cluster_id(), cluster_id);
  }
  record_.set_cluster_id(cluster_id);
  record_.set_last_command_seq(0);
  record_.clear_exited();
  durable_seq_ = 0;
  tellings_.clear();
  ready_.clear();
  owed_.clear();
  owed_bytes_ = 0;
  ++generation_;
  return true;
}

int64_t Ledger::generation() const {
  MutexLock lock(mu_);
  return generation_;
}

bool Ledger::Accept(const v1::Command& command, int64_t generation) {
  MutexLock lock(mu_);
  if (generation != generation_) return false;
  if (command.seq() <= record_.last_command_seq()) return false;
  record_.set_last_command_seq(command.seq());
  if (!command.has_start_ranks()) return true;
  const v1::StartRanks& start = command.start_ranks();
  // Nobody starts an attempt without having kept the end of the one before.
  std::set<RankKey> kept;
  for (const v1::RankExited& exited : record_.exited()) {
    const RankKey key = RankKey::From(exited.rank());
    if (key.job_uid == start.job_uid() && key.attempt < start.attempt()) kept.insert(key);
  }
  ForgetExits(kept);
  for (const int64_t rank : start.ranks()) {
    *record_.add_ranks()->mutable_rank() =
        RankKey{start.job_uid(), start.attempt(), start.epoch(), rank}.ToProto();
  }
  return true;
}

void Ledger::SetDurable(int64_t seq) {
  MutexLock lock(mu_);
  // A larger one is of the cluster before.
  if (seq <= record_.last_command_seq()) durable_seq_ = seq;
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

int Ledger::Owe(const RankKey& key, int64_t step, const v1::WorkerMessage& message) {
  MutexLock lock(mu_);
  if (const auto same = owed_.find({key, step}); same != owed_.end()) Settle(same);
  owed_bytes_ += message.ByteSizeLong();
  owed_[{key, step}] = message;
  int given_up = 0;
  const auto lowest = owed_.lower_bound({key, INT64_MIN});
  if (std::distance(lowest, owed_.upper_bound({key, INT64_MAX})) > kStepsOwed) {
    Settle(lowest);
    ++given_up;
  }
  for (; owed_bytes_ > kMaxOwed && owed_.size() > 1; ++given_up) {
    Settle(std::min_element(owed_.begin(), owed_.end(), [](const auto& a, const auto& b) {
      return a.first.second < b.first.second;
    }));
  }
  return given_up;
}

void Ledger::Settle(Owed::iterator it) {
  owed_bytes_ -= it->second.ByteSizeLong();
  owed_.erase(it);
}

void Ledger::Committed(const std::string& job_uid, int64_t epoch, int64_t step) {
  MutexLock lock(mu_);
  SettleSteps(job_uid, epoch, INT64_MIN, step);
}

void Ledger::Rejected(const std::string& job_uid, int64_t epoch, int64_t step) {
  MutexLock lock(mu_);
  SettleSteps(job_uid, epoch, step, step);
}

void Ledger::SettleSteps(const std::string& job_uid, int64_t epoch, int64_t first, int64_t last) {
  for (auto it = owed_.begin(); it != owed_.end();) {
    const auto next = std::next(it);
    const auto& [key, step] = it->first;
    if (key.job_uid == job_uid && key.epoch == epoch && first <= step && step <= last) Settle(it);
    it = next;
  }
}

void Ledger::ForgetExits(const std::set<RankKey>& keys) {
  if (keys.empty()) return;
  for (const RankKey& key : keys) tellings_.erase(key);
  auto& exits = *record_.mutable_exited();
  exits.erase(std::remove_if(exits.begin(), exits.end(),
                             [&](const v1::RankExited& exited) {
                               return keys.contains(RankKey::From(exited.rank()));
                             }),
              exits.end());
}

bool Ledger::RunsHere(const RankKey& key) const {
  return std::any_of(record_.ranks().begin(), record_.ranks().end(), [&](const auto& rank) {
    return rank.rank().job_uid() == key.job_uid && rank.rank().epoch() == key.epoch;
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
  for (auto it = owed_.lower_bound({key, INT64_MIN});
       it != owed_.end() && it->first.first == key;) {
    const auto next = std::next(it);
    Settle(it);
    it = next;
  }
  v1::RankExited& exited = *record_.add_exited();
  *exited.mutable_rank() = key.ToProto();
  *exited.mutable_exit() = exit;
  tellings_[key] = {.first = now, .newest = now};
  BoundExits();
}

void Ledger::BoundExits() {
  auto& exits = *record_.mutable_exited();
  if (exits.size() > kMaxExits) {
    std::optional<RankKey> oldest;
    for (const v1::RankExited& exited : exits) {
      const RankKey key = RankKey::From(exited.rank());
      const auto telling = tellings_.find(key);
      if (telling == tellings_.end() || !telling->second.heard || RunsHere(key)) continue;
      oldest = key;
      break;
    }
    if (!oldest && exits.size() > kMaxUnheard) oldest = RankKey::From(exits[0].rank());
    if (oldest) ForgetExits({*oldest});
  }
  size_t tails = 0;
  for (const v1::RankExited& exited : exits) tails += exited.exit().stderr_tail().size();
  for (auto it = exits.begin(); it != exits.end() && tails > kMaxTails; ++it) {
    std::string& tail = *it->mutable_exit()->mutable_stderr_tail();
    tails -= tail.size();
    Shorten(tail, kShortTail);
    tails += tail.size();
  }
}

void Ledger::Heard(absl::Duration sent) {
  MutexLock lock(mu_);
  std::set<RankKey> old;
  for (v1::RankExited& exited : *record_.mutable_exited()) {
    const RankKey key = RankKey::From(exited.rank());
    const auto it = tellings_.find(key);
    if (it == tellings_.end() || it->second.newest >= sent) continue;
    if (!it->second.heard) Shorten(*exited.mutable_exit()->mutable_stderr_tail(), kShortTail);
    it->second.heard = true;
    if (sent - it->second.first > kExitAge && !RunsHere(key)) old.insert(key);
  }
  ForgetExits(old);
}

std::vector<v1::WorkerMessage> Ledger::Introduce(const v1::Node& node, absl::Duration now) {
  MutexLock lock(mu_);
  std::vector<v1::WorkerMessage> words(1);
  v1::Hello& hello = *words.front().mutable_hello();
  *hello.mutable_node() = node;
  for (const v1::RecordedRank& rank : record_.ranks()) *hello.add_running() = rank.rank();
  hello.set_last_command_seq(durable_seq_);
  hello.set_cluster_id(record_.cluster_id());
  const size_t tail_bytes =
      kMaxHelloTails / static_cast<size_t>(std::max(1, record_.exited_size()));
  for (const v1::RankExited& exited : record_.exited()) {
    v1::RankExited& told = *hello.add_exited();
    told = exited;
    Shorten(*told.mutable_exit()->mutable_stderr_tail(), tail_bytes);
    const auto telling = tellings_.try_emplace(RankKey::From(exited.rank()), Telling{.first = now});
    telling.first->second.newest = now;
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
