#include "coordinator/core/jobs/kept.h"

#include <algorithm>
#include <functional>

#include "coordinator/core/jobs/removal.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

int64_t BytesOf(const v1::Manifest& manifest) {
  return static_cast<int64_t>(manifest.ByteSizeLong());
}

template <typename Claim>
int64_t SumBytes(const v1::Job& job, const Claim& claim) {
  int64_t bytes = 0;
  for (const v1::Manifest& manifest : job.checkpoints()) {
    if (std::invoke(claim, manifest)) bytes += BytesOf(manifest);
  }
  return bytes;
}

void TellNoRoom(Draft& draft, const v1::Job& job, const v1::Manifest& manifest, int64_t keep) {
  draft.AddEvent(job.uid(), v1::SEVERITY_WARNING, "CHECKPOINT_NO_ROOM",
                 fmt::format("the checkpoint of step {} is removed though checkpoint.keep is {}: "
                             "the manifests of those that a job keeps may have {} bytes together",
                             manifest.step(), keep, draft.options().most_kept_bytes),
                 {{"step", std::to_string(manifest.step())}, {"directory", manifest.directory()}});
}

}  // namespace

void RemoveOld(Draft& draft, v1::Job& job) {
  const v1::Checkpoint& rules = job.resolved_spec().checkpoint();
  const int64_t keep = std::max<int64_t>(1, rules.has_keep() ? rules.keep() : 3);
  auto& known = *job.mutable_checkpoints();
  int64_t count = std::ranges::count(known, false, &v1::Manifest::pinned);
  int64_t bytes = SumBytes(job, [](const v1::Manifest&) { return true; });
  for (auto it = known.begin();; it = known.erase(it)) {
    it = std::ranges::find(it, known.end(), false, &v1::Manifest::pinned);
    const bool is_beyond = count > keep;
    if (!is_beyond && bytes <= draft.options().most_kept_bytes) return;
    if (it == known.end() || it + 1 == known.end()) return;
    if (!is_beyond) TellNoRoom(draft, job, *it, keep);
    RemoveCheckpoint(draft, job, *it);
    --count;
    bytes -= BytesOf(*it);
  }
}

std::string AgainstPin(const Draft& draft, const v1::Job& job, const v1::Manifest& manifest) {
  const int64_t most = draft.options().most_kept_bytes / 2;
  const int64_t pinned = SumBytes(job, &v1::Manifest::pinned);
  if (pinned + BytesOf(manifest) <= most) return "";
  return fmt::format(
      "the manifests of job '{}' that are pinned have {} bytes, that of step {} has {}, and {} are "
      "the most; unpin another one, or copy {} to a place of your own: checkpoint.load of a job "
      "takes it from there",
      job.metadata().name(), pinned, manifest.step(), BytesOf(manifest), most,
      manifest.directory());
}

}  // namespace mega::core
