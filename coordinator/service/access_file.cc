#include "coordinator/service/access_file.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/read_file.h"
#include "base/thread.h"
#include "base/yaml/yaml_tree.h"

namespace mega::service {
namespace {

constexpr std::chrono::seconds kLookEvery{1};

}  // namespace

absl::StatusOr<std::unique_ptr<AccessFile>> AccessFile::Open(std::string path) {
  std::unique_ptr<AccessFile> file(new AccessFile(std::move(path)));
  if (const absl::Status status = file->Look(); !status.ok()) {
    return InvalidArgument("--access cannot be used:\n{}", std::string(status.message()));
  }
  MEGA_ASSIGN_OR_RETURN(file->thread_,
                        StartThread([&self = *file](std::stop_token stop) { self.Watch(stop); }));
  return file;
}

AccessFile::~AccessFile() {
  thread_.request_stop();
  wake_.NotifyAll();
}

std::shared_ptr<const Roles> AccessFile::roles() const {
  MutexLock lock(mu_);
  return roles_;
}

absl::Status AccessFile::Look() {
  MutexLock lock(look_mu_);
  absl::StatusOr<std::string> text = ReadRegularFile(path_, kMaxYamlBytes);
  // The text rather than its time: a file that is written twice within a tick of the clock counts.
  if (text.ok() && *text == text_ && roles() != nullptr) return found_;
  absl::StatusOr<Roles> read = text.ok() ? Roles::Parse(path_, *text) : text.status();
  if (text.ok()) text_ = *std::move(text);
  if (std::exchange(found_, read.status()) == read.status() && !read.ok()) return found_;
  const bool is_first = roles() == nullptr;
  if (!read.ok()) {
    if (!is_first) {
      log::Error(
          "the file of --access cannot be used; correct it: until then the roles stay as "
          "they were",
          {{"file", path_}, {"error", std::string(read.status().message())}});
    }
    return found_;
  }
  if (!is_first) log::Info("the file of --access has changed and is in force", {{"file", path_}});
  MutexLock roles_lock(mu_);
  roles_ = std::make_shared<const Roles>(*std::move(read));
  return found_;
}

void AccessFile::Watch(std::stop_token stop) {
  while (true) {
    {
      MutexLock lock(mu_);
      if (!stop.stop_requested()) wake_.WaitFor(mu_, kLookEvery);
    }
    if (stop.stop_requested()) return;
    Look().IgnoreError();  // it has told the log
  }
}

}  // namespace mega::service
