#include "coordinator/core/health/findings.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/utf8.h"
#include "fmt/core.h"

namespace mega::core {
namespace {

constexpr int kMostFindings = 32;
constexpr size_t kCheckBytes = 32;
constexpr size_t kMessageBytes = 512;

// Checks that only the coordinator makes.
bool IsOwn(const v1::Finding& finding) {
  return finding.check() == "straggler" || finding.check() == "preflight";
}

bool IsSame(const v1::Finding& a, const v1::Finding& b) {
  return a.check() == b.check() && a.severity() == b.severity() && a.message() == b.message();
}

bool AreSame(const v1::Node& a, const v1::Node& b) {
  return std::ranges::equal(a.findings(), b.findings(), IsSame);
}

}  // namespace

bool HasError(const v1::Node& node) {
  return std::ranges::any_of(node.findings(), [](const v1::Finding& finding) {
    return finding.severity() == v1::SEVERITY_ERROR;
  });
}

void SetProbeFindings(Draft& draft, const NodeId& node,
                      const google::protobuf::RepeatedPtrField<v1::Finding>& findings) {
  const v1::Node& known = *draft.FindNode(node);
  v1::Node after;  // findings only
  for (const v1::Finding& finding : known.findings()) {
    if (IsOwn(finding)) *after.add_findings() = finding;
  }
  std::map<std::string, v1::Finding> told;  // by check; the worst of each
  for (const v1::Finding& finding : findings) {
    if (IsOwn(finding) || finding.check().empty()) continue;
    if (told.size() >= kMostFindings) break;
    v1::Finding& kept = told[CutUtf8(finding.check(), kCheckBytes)];
    if (kept.severity() < finding.severity()) kept = finding;
  }
  for (auto& [check, finding] : told) {
    finding.set_check(check);
    finding.set_message(CutUtf8(finding.message(), kMessageBytes));
    *finding.mutable_time() = draft.wall();
    // Since when it is so, as far as this is known.
    for (const v1::Finding& before : known.findings()) {
      if (IsSame(before, finding)) *finding.mutable_time() = before.time();
    }
    *after.add_findings() = std::move(finding);
  }
  if (AreSame(known, after)) return;
  const bool had_error = HasError(known);
  v1::Node& record = draft.EditNode(node);
  *record.mutable_findings() = after.findings();
  if (HasError(record) != had_error) draft.ClusterChanged();
}

void AddOwnFinding(Draft& draft, const NodeId& node, std::string_view check, v1::Severity severity,
                   std::string_view message) {
  if (draft.FindNode(node) == nullptr) return;
  v1::Node& record = draft.EditNode(node);
  v1::Finding* finding = nullptr;
  for (v1::Finding& before : *record.mutable_findings()) {
    if (before.check() == check) finding = &before;
  }
  if (finding == nullptr) finding = record.add_findings();
  finding->set_check(std::string(check));
  finding->set_severity(severity);
  finding->set_message(CutUtf8(message, kMessageBytes));
  *finding->mutable_time() = draft.wall();
  draft.ClusterChanged();
}

void KeepOwnFindings(const v1::Node* known, v1::Node& said) {
  said.clear_findings();
  if (known == nullptr) return;
  const bool is_same_worker = known->incarnation() == said.incarnation();
  for (const v1::Finding& finding : known->findings()) {
    // What the probes held against it stands until this worker has told its own.
    if (is_same_worker || !IsOwn(finding)) *said.add_findings() = finding;
  }
}

}  // namespace mega::core
