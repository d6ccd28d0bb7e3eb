// Everything that follows from the KeyRule beside each JobSpec field: defaults, bounds, allowed
// words, features refused by name. Shared by coordinator and CLI, so both say the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "mega/v1/job.pb.h"
#include "mega/v1/options.pb.h"

namespace mega::spec {

// One thing wrong with a spec. `field` is the path as written in the job file ("training.steps").
struct Violation {
  std::string field;
  std::string message;  // both sides and the way out
};

// Sets every unset scalar that has a default. Idempotent. Absent sections come into being.
v1::JobSpec ApplyDefaults(const v1::JobSpec& spec);

// All violations at once: KeyRules, and rules between keys (steps or tokens, micro ≤ global batch,
// min_lr ≤ lr, heads divisible by groups, warmup ≤ steps …). Takes a spec with defaults applied.
std::vector<Violation> Validate(const v1::JobMetadata& metadata, const v1::JobSpec& resolved);

// The violations of the model section alone, once it is complete: model.hf, if set, has been read
// into the keys left unset (model/model_spec.h), so nothing may be missing.
std::vector<Violation> ValidateModel(const v1::JobSpec& resolved);

// The one way from a job as it is sent to a job that can be planned; megactl and the coordinator
// both take it, so neither accepts what the other refuses.
struct Resolution {
  v1::JobSpec spec;                   // defaults applied
  std::vector<Violation> violations;  // empty: the job can be planned
};
// model.hf must have been read by then: its folder is on the machine of who submits, and nowhere
// else (planner::FillFromHf). A model.hf that was not is a violation.
Resolution Resolve(const v1::JobMetadata& metadata, const v1::JobSpec& sent);

// Optimizer steps of the whole job: training.steps, or as many as cover training.tokens. 0 when the
// spec says neither.
int64_t TotalSteps(const v1::JobSpec& resolved);

// Whether the spec says anything about validation. What it gets by default is left out where the
// text is too short for it; what was asked for must be possible.
bool AsksForEvaluation(const v1::JobSpec& resolved);

// The KeyRule of a field (empty when it has none).
v1::KeyRule RuleOf(const google::protobuf::FieldDescriptor& field);

// INVALID_ARGUMENT with one line a violation, or OK.
absl::Status ToStatus(const std::vector<Violation>& violations);

}  // namespace mega::spec
