#include "worker/engine/main/checkpoint_task.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "worker/engine/checkpoint/manifest.h"
#include "worker/engine/checkpoint/verifier.h"
#include "worker/engine/main/exit_codes.h"
#include "worker/engine/main/progress_line.h"

namespace mega::engine {
namespace {

constexpr int kExitNotFound = 3;  // megactl's

double Mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

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

// A folder may have been written over since, or brought back from a backup: whole, and another.
void CompareWithRecord(const VerifyOptions& options, checkpoint::Verdict& verdict) {
  const v1::Manifest& found = verdict.manifest;
  if (found.version() == 0) return;  // there is none that can be read, and that is said
  const int64_t step = options.step.value_or(found.step());
  const int64_t epoch = options.epoch.value_or(found.epoch());
  if (found.step() == step && found.epoch() == epoch) return;
  verdict.damage.insert(
      verdict.damage.begin(),
      fmt::format("{}: it is of step {}, saved in epoch {}, and the job's checkpoint is of step "
                  "{}, saved in epoch {}",
                  checkpoint::kManifestName, found.step(), found.epoch(), step, epoch));
}

}  // namespace

int VerifyCheckpoint(const VerifyOptions& options) {
  absl::StatusOr<checkpoint::Verdict> verdict;
  {
    ProgressLine line;
    verdict = checkpoint::Verify(options.folder, [&](const checkpoint::VerifyProgress& progress) {
      line.Show(progress.bytes_read, progress.bytes_total, [&] {
        return fmt::format("{:.1f} of {:.1f} MiB  {:.0f} MiB/s", Mebibytes(progress.bytes_read),
                           Mebibytes(progress.bytes_total),
                           Mebibytes(progress.bytes_read) / line.seconds());
      });
    });
  }
  if (!verdict.ok()) {
    TellError("mega-engine checkpoint verify", verdict.status());
    return absl::IsNotFound(verdict.status()) ? kExitNotFound : kExitFailed;
  }
  CompareWithRecord(options, *verdict);
  if (options.output == "json") {
    PrintJson(options.folder, *verdict);
  } else {
    PrintText(options.folder, *verdict);
  }
  return verdict->damage.empty() ? kExitOk : kExitFailed;
}

}  // namespace mega::engine
