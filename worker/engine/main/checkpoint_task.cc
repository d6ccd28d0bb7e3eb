#include "worker/engine/main/checkpoint_task.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "worker/engine/checkpoint/verifier.h"
#include "worker/engine/main/exit_codes.h"

namespace mega::engine {
namespace {

constexpr int kExitNotFound = 3;  // megactl's

double Mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// One line on a terminal, rewritten a few times a second; nothing in a pipe.
class ProgressBar {
 public:
  ProgressBar() : is_shown_(isatty(STDERR_FILENO) == 1) {}
  ~ProgressBar() {
    if (is_drawn_) std::fputs("\r\033[K", stderr);
  }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(const checkpoint::VerifyProgress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (!is_shown_ || now - drawn_ < std::chrono::milliseconds(100)) return;
    drawn_ = now;
    is_drawn_ = true;
    constexpr int kWidth = 30;
    const double share = progress.bytes_total > 0 ? static_cast<double>(progress.bytes_read) /
                                                        static_cast<double>(progress.bytes_total)
                                                  : 1;
    const auto filled = static_cast<size_t>(share * kWidth);
    const double seconds = std::chrono::duration<double>(now - start_).count();
    std::fprintf(stderr, "\r[%s%s] %5.1f %%  %.1f of %.1f MiB  %.0f MiB/s\033[K",
                 std::string(filled, '#').c_str(), std::string(kWidth - filled, '.').c_str(),
                 100 * share, Mebibytes(progress.bytes_read), Mebibytes(progress.bytes_total),
                 Mebibytes(progress.bytes_read) / seconds);
  }

 private:
  const bool is_shown_;
  bool is_drawn_ = false;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point drawn_ = start_;
};

void PrintJson(const std::string& folder, const checkpoint::Verdict& verdict) {
  const nlohmann::ordered_json json = {{"directory", folder},
                                       {"step", verdict.manifest.step()},
                                       {"whole", verdict.damage.empty()},
                                       {"has_manifest", verdict.has_manifest_file},
                                       {"files", verdict.files},
                                       {"bytes", verdict.bytes},
                                       {"damage", verdict.damage},
                                       {"other_files", verdict.others}};
  // Names that are not UTF-8 must not end in an exception.
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  std::printf("%s\n", json.dump(2, ' ', false, replace).c_str());
}

void PrintText(const std::string& folder, const checkpoint::Verdict& verdict) {
  for (const std::string& damage : verdict.damage) {
    std::printf("%s\n", PrintableLine(damage).c_str());
  }
  if (verdict.damage.empty()) {
    std::printf("%s: the checkpoint of step %lld is whole: %lld files, %.1f MiB, %d tensors\n",
                PrintableLine(folder).c_str(), static_cast<long long>(verdict.manifest.step()),
                static_cast<long long>(verdict.files), Mebibytes(verdict.bytes),
                verdict.manifest.tensors_size());
  } else if (verdict.has_manifest_file) {
    std::printf("%s: DAMAGED; a restart that meets it goes on from the checkpoint before\n",
                PrintableLine(folder).c_str());
  } else {
    std::printf("%s: TORN; nothing will start from it\n", PrintableLine(folder).c_str());
  }
  if (!verdict.others.empty()) {
    std::printf("%zu more files in the folder belong to no checkpoint, the first is %s\n",
                verdict.others.size(), PrintableLine(verdict.others.front()).c_str());
  }
}

}  // namespace

int VerifyCheckpoint(const VerifyOptions& options) {
  absl::StatusOr<checkpoint::Verdict> verdict;
  {
    ProgressBar bar;
    verdict = checkpoint::Verify(
        options.folder, [&](const checkpoint::VerifyProgress& progress) { bar.Show(progress); });
  }
  if (!verdict.ok()) {
    TellError("mega-engine checkpoint verify", verdict.status());
    return absl::IsNotFound(verdict.status()) ? kExitNotFound : kExitFailed;
  }
  if (options.output == "json") {
    PrintJson(options.folder, *verdict);
  } else {
    PrintText(options.folder, *verdict);
  }
  return verdict->damage.empty() ? kExitOk : kExitFailed;
}

}  // namespace mega::engine
