#include "coordinator/state/durable_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "absl/strings/numbers.h"
#include "fmt/core.h"

namespace mega::state {
namespace {

// One width for all, so that a shorter number leaves nothing of a longer one.
constexpr size_t kBytes = 20;  // 19 digits and a line's end

}  // namespace

std::optional<int64_t> DurableMark::Read() const {
  const UniqueFd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, kBytes + 1> bytes{};
  if (!fd || read(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(kBytes)) {
    return std::nullopt;
  }
  int64_t revision = 0;
  if (!absl::SimpleAtoi(std::string(bytes.data(), kBytes), &revision) || revision < 0) {
    return std::nullopt;
  }
  return revision;
}

void DurableMark::Write(int64_t revision) {
  if (!fd_) fd_ = UniqueFd(open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!fd_) return;
  const std::string text = fmt::format("{:019}\n", revision);
  (void)!pwrite(fd_.get(), text.data(), text.size(), 0);
}

}  // namespace mega::state
