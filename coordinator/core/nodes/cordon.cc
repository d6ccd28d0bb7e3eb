#include "coordinator/core/nodes/cordon.h"

#include "absl/status/status.h"
#include "base/clock.h"
#include "coordinator/core/jobs/yield.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr char kOperator[] = "operator";
constexpr absl::Duration kDrainGrace = absl::Seconds(60);
constexpr size_t kReasonBytes = 512;  // it is kept with the node, and shown wherever that is

bool IsKnown(Draft& draft, int64_t call, const NodeId& node) {
  if (draft.FindNode(node) != nullptr) return true;
  draft.ReplyError(call, absl::StatusCode::kNotFound, "NODE_NOT_FOUND",
                   fmt::format("there is no node '{}'; `megactl nodes` lists them", node));
  return false;
}

void ReplyNode(Draft& draft, int64_t call, const NodeId& node) {
  draft.Flush();
  v1::ReplyCall reply;
  reply.set_call(call);
  *reply.mutable_node() = NodeView(draft.state(), node);
  draft.Reply(std::move(reply));
}

// There is such a node, and the reason is not too long.
bool IsAcceptable(Draft& draft, int64_t call, const NodeId& node, const std::string& reason) {
  if (!IsKnown(draft, call, node)) return false;
  if (reason.size() <= kReasonBytes) return true;
  draft.ReplyError(call, absl::StatusCode::kInvalidArgument, "REASON_TOO_LONG",
                   fmt::format("the reason for node '{}' has {} bytes, at most {} are kept; give a "
                               "shorter one, or where to read more",
                               node, reason.size(), kReasonBytes));
  return false;
}

std::string ReasonOr(const std::string& reason, const char* otherwise) {
  return reason.empty() ? otherwise : reason;
}

void Cordon(Draft& draft, const NodeId& node, const std::string& reason) {
  const v1::Node& known = *draft.FindNode(node);
  const bool is_same = known.cordon_cause() == kOperator && known.cordon_reason() == reason;
  if (known.cordoned() && is_same) return;
  if (!known.cordoned()) draft.ClusterChanged();
  v1::Node& record = draft.EditNode(node);
  record.set_cordoned(true);
  record.set_cordon_cause(kOperator);
  record.set_cordon_reason(reason);
}

}  // namespace

void CordonNode(Draft& draft, const v1::CoreRequest& request) {
  const v1::CordonNodeRequest& asked = request.cordon_node();
  if (!IsAcceptable(draft, request.call(), asked.name(), asked.reason())) return;
  Cordon(draft, asked.name(), ReasonOr(asked.reason(), "cordoned by an operator"));
  ReplyNode(draft, request.call(), asked.name());
}

void UncordonNode(Draft& draft, const v1::CoreRequest& request) {
  const NodeId& id = request.uncordon_node().name();
  if (!IsKnown(draft, request.call(), id)) return;
  if (draft.FindNode(id)->cordoned()) {
    v1::Node& node = draft.EditNode(id);
    node.set_cordoned(false);
    node.set_draining(false);
    node.clear_cordon_cause();
    node.clear_cordon_reason();
    node.clear_parole_time();
    draft.ClusterChanged();
  }
  ReplyNode(draft, request.call(), id);
}

void DrainNode(Draft& draft, const v1::CoreRequest& request) {
  const v1::DrainNodeRequest& asked = request.drain_node();
  const NodeId& id = asked.name();
  if (!IsAcceptable(draft, request.call(), id, asked.reason())) return;
  const absl::Duration grace = asked.has_grace() ? FromProto(asked.grace()) : kDrainGrace;
  if (grace < absl::ZeroDuration()) {
    return draft.ReplyError(
        request.call(), absl::StatusCode::kInvalidArgument, "GRACE_INVALID",
        fmt::format("grace is {}; give 0 or more", absl::FormatDuration(grace)));
  }
  Cordon(draft, id, ReasonOr(asked.reason(), "drained by an operator"));
  if (!draft.FindNode(id)->draining()) draft.EditNode(id).set_draining(true);
  for (const JobUid& uid : JobsOn(draft.state(), id)) {
    YieldAttempt(draft, draft.EditJob(uid), fmt::format("node '{}' is drained", id), grace);
  }
  ReplyNode(draft, request.call(), id);
}

void KeepOwn(const v1::Node* known, v1::Node& said) {
  const v1::Node none;
  const v1::Node& from = known == nullptr ? none : *known;
  said.set_cordoned(from.cordoned());
  said.set_cordon_reason(from.cordon_reason());
  said.set_cordon_cause(from.cordon_cause());
  said.set_draining(from.draining());
  *said.mutable_strikes() = from.strikes();
  said.clear_parole_time();
  if (from.has_parole_time()) *said.mutable_parole_time() = from.parole_time();
  said.clear_preflight();
  if (from.has_preflight()) *said.mutable_preflight() = from.preflight();
}

}  // namespace mega::core
