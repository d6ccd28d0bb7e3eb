#include "coordinator/state/durable_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "base/atomic_file.h"
#include "base/log.h"
#include "base/read_file.h"
#include "fmt/core.h"

namespace mega::state {
namespace {

// One width for all, so that a shorter number leaves nothing of a longer one.
constexpr size_t kBytes = 20;  // 19 digits and a line's end
constexpr size_t kMostFileBytes = 4096;
constexpr size_t kMostShown = 40;

std::string Text(int64_t revision) { return fmt::format("{:019}\n", revision); }

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

absl::StatusOr<std::optional<int64_t>> DurableMark::Read() const {
  const absl::StatusOr<std::string> text = ReadRegularFile(path_, kMostFileBytes);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  // Another user's file is no damage, and nothing is restored for it.
  if (absl::IsPermissionDenied(text.status())) return text.status();
  if (!text.ok()) return DataLoss("{}", std::string(text.status().message()));
  int64_t revision = 0;
  if (text->size() != kBytes || text->back() != '\n' ||
      !std::all_of(text->begin(), text->end() - 1, IsDigit) ||
      !absl::SimpleAtoi(text->substr(0, kBytes - 1), &revision)) {
    return DataLoss("{} holds '{}' ({} bytes) and no revision, which is 19 digits and a line's end",
                    path_, absl::CHexEscape(text->substr(0, kMostShown)), text->size());
  }
  return revision;
}

absl::Status DurableMark::Make(int64_t revision) {
  MEGA_RETURN_IF_ERROR(WriteFileAtomically(path_, Text(revision)));
  fd_ = UniqueFd(open(path_.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd_) return ErrnoStatus(errno, "opening " + path_);
  return absl::OkStatus();
}

void DurableMark::Write(int64_t revision) {
  absl::Status status;
  if (!fd_) {
    status = Make(revision);
  } else if (pwrite(fd_.get(), Text(revision).data(), kBytes, 0) != static_cast<ssize_t>(kBytes)) {
    status = ErrnoStatus(errno, "writing " + path_);
  }
  if (status.ok() || std::exchange(has_failed_, true)) return;
  log::Warn(
      "changes that get lost may not be missed: the newest revision cannot be written beside "
      "the state",
      {{"file", path_}, {"error", std::string(status.message())}});
}

}  // namespace mega::state
