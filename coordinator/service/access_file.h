// The file of --access, and what it says now: it is read again every second. One that is wrong, or
// gone, changes nothing, and the log says so.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "coordinator/service/roles.h"

namespace mega::service {

class AccessFile {
 public:
  // The reason, with every mistake, when it cannot be used.
  static absl::StatusOr<std::unique_ptr<AccessFile>> Open(std::string path);
  ~AccessFile();

  std::shared_ptr<const Roles> roles() const;

  // Reads it again, as happens every second. What is wrong with it; the roles then stay.
  absl::Status Look();

 private:
  explicit AccessFile(std::string path) : path_(std::move(path)) {}
  void Watch(std::stop_token stop);

  const std::string path_;
  mutable Mutex mu_;
  CondVar wake_;
  std::shared_ptr<const Roles> roles_ MEGA_GUARDED_BY(mu_);
  Mutex look_mu_;  // one look at a time
  std::string text_ MEGA_GUARDED_BY(look_mu_);
  absl::Status found_ MEGA_GUARDED_BY(look_mu_);
  std::jthread thread_;
};

}  // namespace mega::service
