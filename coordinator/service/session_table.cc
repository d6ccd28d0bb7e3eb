#include "coordinator/service/session_table.h"

#include <utility>
#include <vector>

namespace mega::service {

int64_t SessionTable::Open(const std::string& node, std::shared_ptr<SessionWriter> writer) {
  MutexLock lock(mu_);
  const int64_t session = ++last_;
  sessions_[session] = {node, std::move(writer)};
  return session;
}

void SessionTable::Closed(int64_t session) {
  MutexLock lock(mu_);
  const auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  const auto leading = leading_.find(it->second.node);
  if (leading != leading_.end() && leading->second == session) leading_.erase(leading);
  sessions_.erase(it);
}

std::shared_ptr<SessionWriter> SessionTable::Find(int64_t session) const {
  MutexLock lock(mu_);
  const auto it = sessions_.find(session);
  return it == sessions_.end() ? nullptr : it->second.writer;
}

void SessionTable::Send(int64_t session, v1::CoordinatorMessage message) {
  std::shared_ptr<SessionWriter> writer;
  {
    MutexLock lock(mu_);
    const auto it = sessions_.find(session);
    if (it == sessions_.end()) return;
    writer = it->second.writer;
    if (message.has_lease()) leading_[it->second.node] = session;
  }
  writer->Send(std::move(message));
}

void SessionTable::Close(int64_t session) {
  if (auto writer = Find(session)) writer->Close();
}

void SessionTable::CloseAll() {
  std::vector<std::shared_ptr<SessionWriter>> writers;
  {
    MutexLock lock(mu_);
    for (auto& [session, entry] : sessions_) writers.push_back(entry.writer);
  }
  for (auto& writer : writers) writer->Close();
}

int64_t SessionTable::SessionOf(const std::string& node) const {
  MutexLock lock(mu_);
  const auto it = leading_.find(node);
  return it == leading_.end() ? 0 : it->second;
}

size_t SessionTable::size() const {
  MutexLock lock(mu_);
  return sessions_.size();
}

}  // namespace mega::service
