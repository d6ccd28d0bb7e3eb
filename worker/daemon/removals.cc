#include "worker/daemon/removals.h"

#include <limits.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/atomic_file.h"
#include "base/log.h"
#include "base/read_file.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "worker/daemon/checkpoint_removal.h"
#include "worker/daemon/state_dir.h"

namespace mega::daemon {
namespace {

// A line holds a path and a few short fields; escapes make a path at most six times as long.
constexpr int64_t kMostFileBytes = int64_t{Removals::kMostKept + 1} * (8 * PATH_MAX);

constexpr absl::Duration kWriteAfter = absl::Milliseconds(100);

bool IsOrder(const v1::DeleteCheckpoint& order) {
  return IsPlainName(order.job_uid()) && order.directory().size() < PATH_MAX;
}

}  // namespace

Removals::Removals(const std::string& state_dir, EventLoop& loop, EventLoop& chores,
                   Options options)
    : path_(state_dir + "/removals.jsonl"), loop_(loop), chores_(chores), options_(options) {}

void Removals::Load() {
  const auto text = ReadRegularFile(path_, kMostFileBytes);
  if (absl::IsNotFound(text.status())) return;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // a newer worker may have written it
  int64_t damaged = text.ok() ? 0 : 1;
  for (const absl::string_view line :
       absl::StrSplit(text.ok() ? *text : std::string(), '\n', absl::SkipEmpty())) {
    v1::DeleteCheckpoint order;
    const auto parsed =
        google::protobuf::util::JsonStringToMessage(std::string(line), &order, options);
    if (!parsed.ok() || !IsOrder(order)) {
      ++damaged;
    } else if (Find(order) == kept_.end() && kept_.size() < kMostKept) {
      kept_.push_back({.order = std::move(order)});
    }
  }
  if (damaged > 0) {
    log::Warn("old checkpoints may stay: what was still to be removed cannot be read",
              {{"file", path_},
               {"lines", damaged},
               {"why", text.ok() ? "damaged" : std::string(text.status().message())}});
  }
}

absl::Status Removals::Keep(const std::vector<v1::DeleteCheckpoint>& orders) {
  for (const v1::DeleteCheckpoint& order : orders) {
    if (!IsOrder(order)) {
      log::Warn("an order to remove a checkpoint is none",
                {{"job_uid", order.job_uid().substr(0, 128)},
                 {"directory_bytes", order.directory().size()}});
    } else if (Find(order) == kept_.end()) {
      kept_.push_back({.order = order});
    }
  }
  while (kept_.size() > kMostKept) {
    log::Error("a checkpoint stays: more removals wait than are kept; remove it by hand",
               {{"directory", kept_.front().order.directory()}, {"kept", kMostKept}});
    kept_.erase(kept_.begin());
  }
  return Write();
}

std::vector<Removals::Kept>::iterator Removals::Find(const v1::DeleteCheckpoint& order) {
  return std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
    return google::protobuf::util::MessageDifferencer::Equals(kept.order, order);
  });
}

void Removals::CarryOut() {
  for (Kept& kept : kept_) {
    if (std::exchange(kept.is_under_way, true)) continue;
    Try(kept.order);
  }
}

void Removals::Try(const v1::DeleteCheckpoint& order) {
  chores_.Post([this, order] {
    loop_.Post([this, order, status = RemoveCheckpoint(order)] { Tried(order, status); });
  });
}

void Removals::Tried(const v1::DeleteCheckpoint& order, const absl::Status& status) {
  const auto kept = Find(order);
  if (kept == kept_.end()) return;  // given up meanwhile
  const std::string why(status.message());
  if (absl::IsUnavailable(status)) {
    if (kept->tries == 0) {
      log::Warn("a checkpoint cannot be removed yet; trying on",
                {{"directory", order.directory()}, {"why", why}});
    }
    const absl::Duration wait =
        std::min(options_.last_retry, options_.first_retry * (int64_t{1} << kept->tries));
    kept->tries = std::min(kept->tries + 1, 30);
    loop_.PostAfter(wait, [this, order] { Try(order); });
    return;
  }
  if (!status.ok()) {
    log::Warn("a checkpoint stays", {{"directory", order.directory()}, {"why", why}});
  } else if (kept->tries > 0) {
    log::Info("a checkpoint is removed at last", {{"directory", order.directory()}});
  }
  kept_.erase(kept);
  WriteSoon();
}

// Late, and failing, it is removed once more by the next incarnation, which does no harm.
void Removals::WriteSoon() {
  if (std::exchange(is_write_posted_, true)) return;
  loop_.PostAfter(kWriteAfter, [this] {
    is_write_posted_ = false;
    if (const absl::Status written = Write(); !written.ok()) {
      log::Debug("removals.jsonl was not written", {{"why", std::string(written.message())}});
    }
  });
}

absl::Status Removals::Write() const {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  for (const Kept& kept : kept_) {
    std::string line;
    const auto printed = google::protobuf::util::MessageToJsonString(kept.order, &line, options);
    if (!printed.ok()) return Internal("{}: {}", path_, std::string(printed.message()));
    text += line + "\n";
  }
  return WriteFileAtomically(path_, text);
}

}  // namespace mega::daemon
