#include "coordinator/service/replay.h"

#include <filesystem>
#include <optional>

#include "coordinator/service/journal.h"

namespace mega::service {
namespace {

constexpr int64_t kShown = 5;
constexpr size_t kShownBytes = 4000;

std::string Text(const google::protobuf::Message& message) {
  std::string text = message.ShortDebugString();
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + " …";
  return text;
}

class Replayer {
 public:
  Replayer(int64_t from, std::ostream& out) : from_(from), out_(out) {}

  absl::Status Visit(const v1::JournalRecord& record) {
    if (record.has_snapshot()) {
      if (next_ != 0 && record.number() > next_) LeaveOut(record.number());
      state_ = core::FromSnapshot(record.snapshot());
      next_ = record.number();
      return absl::OkStatus();
    }
    if (!state_) return DataLoss("input {} comes before any snapshot", record.number());
    if (record.number() != next_) {
      return DataLoss("input {} follows {}: some are missing", record.number(), next_ - 1);
    }
    ++next_;
    const core::Decision decision = core::Step(*state_, record.event());
    if (record.number() < from_) return absl::OkStatus();
    ++result.inputs;
    if (DecisionHash(decision) != record.decision_hash()) Differs(record, decision);
    return absl::OkStatus();
  }

  ReplayResult result;

 private:
  void LeaveOut(int64_t number) {
    result.left_out += number - next_;
    out_ << fmt::format("inputs {} to {} were not written; going on from a snapshot\n", next_,
                        number - 1);
  }
  void Differs(const v1::JournalRecord& record, const core::Decision& decision) {
    if (++result.differences > kShown) return;
    out_ << fmt::format("input {} is decided otherwise: {:016x} recorded, {:016x} now\n  {}\n",
                        record.number(), record.decision_hash(), DecisionHash(decision),
                        Text(record.event()));
    for (const v1::Mutation& mutation : decision.mutations)
      out_ << "  + " << Text(mutation) << "\n";
    for (const v1::Effect& effect : decision.effects) out_ << "  > " << Text(effect) << "\n";
  }

  const int64_t from_;
  std::ostream& out_;
  std::optional<core::State> state_;
  int64_t next_ = 0;
};

}  // namespace

absl::StatusOr<ReplayResult> Replay(const std::string& folder, int64_t from, std::ostream& out) {
  std::error_code error;
  const std::string inside = folder + "/journal";
  MEGA_ASSIGN_OR_RETURN(
      const std::vector<std::string> segments,
      JournalSegments(std::filesystem::is_directory(inside, error) ? inside : folder));
  if (segments.empty()) {
    return NotFound("{} holds no journal; give a coordinator's --state-dir", folder);
  }
  Replayer replayer(from, out);
  for (const std::string& segment : segments) {
    bool torn = false;
    const absl::Status status = ReadSegment(
        segment, [&](const v1::JournalRecord& record) { return replayer.Visit(record); }, &torn);
    if (!status.ok()) return Annotate(status, segment);
    ++replayer.result.segments;
    if (torn) out << fmt::format("{} ends in the middle of a record\n", segment);
  }
  return replayer.result;
}

}  // namespace mega::service
