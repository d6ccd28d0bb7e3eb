#include "worker/daemon/log_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <vector>

namespace mega::daemon {

LogCapture::LogCapture(OnEnd on_end) : on_end_(std::move(on_end)), thread_([this] { Run(); }) {}

LogCapture::~LogCapture() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  poller_.Wake();
  thread_.join();
}

void LogCapture::Add(const RankKey& key, std::shared_ptr<RankLog> log, UniqueFd out, UniqueFd err) {
  MutexLock lock(mu_);
  open_pipes_[key] = 2;
  UniqueFd* pipes[] = {&out, &err};
  for (int i = 0; i < 2; ++i) {
    auto source = std::make_shared<Source>();
    source->key = key;
    source->log = log;
    source->fd = std::move(*pipes[i]);
    source->is_stderr = i == 1;
    const int fd = source->fd.get();
    fcntl(fd, F_SETFL, O_NONBLOCK);
    sources_[fd] = std::move(source);
    poller_.Add(fd);
  }
}

void LogCapture::Forget(const RankKey& key) {
  MutexLock lock(mu_);
  open_pipes_.erase(key);
  std::erase_if(sources_, [&](const auto& entry) { return entry.second->key == key; });
}

void LogCapture::Drain(int fd) {
  std::shared_ptr<Source> source;
  {
    MutexLock lock(mu_);
    const auto it = sources_.find(fd);
    if (it == sources_.end()) return;
    source = it->second;
  }
  // One buffer's worth, so that a chatty rank does not keep the others waiting.
  thread_local std::vector<char> buffer(256 << 10);
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got > 0) {
    captured_bytes_.fetch_add(got, std::memory_order_relaxed);
    const size_t lost = source->log->Append(
        std::string_view(buffer.data(), static_cast<size_t>(got)), source->is_stderr);
    lost_bytes_.fetch_add(static_cast<int64_t>(lost), std::memory_order_relaxed);
    return;
  }
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  bool both_ended = false;
  {
    MutexLock lock(mu_);
    sources_.erase(fd);
    const auto pipes = open_pipes_.find(source->key);
    if (pipes != open_pipes_.end() && --pipes->second == 0) {
      open_pipes_.erase(pipes);
      both_ended = true;
    }
  }
  poller_.Remove(fd);
  if (both_ended) on_end_(source->key);
}

void LogCapture::Run() {
  while (true) {
    const std::vector<int> ready = poller_.Wait(std::chrono::seconds(1));
    {
      MutexLock lock(mu_);
      if (stopping_) return;
    }
    for (const int fd : ready) Drain(fd);
  }
}

}  // namespace mega::daemon
