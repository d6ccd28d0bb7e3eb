// From the job that was sent to the job that is planned.
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/utf8.h"
#include "coordinator/planner/spec/spec.h"
#include "fmt/format.h"

namespace mega::spec {

namespace {

// The keys that every config.json gives (planner::ParseHfConfig).
constexpr const char* kKeysOfHfConfig[] = {
    "num_layers",    "hidden_size",         "ffn_hidden_size",         "vocab_size",
    "rope_theta",    "num_attention_heads", "max_position_embeddings", "norm_epsilon",
    "tie_embeddings"};

void CheckHfWasRead(const v1::Model& model, std::vector<Violation>& out) {
  if (!model.has_hf()) return;
  std::vector<std::string> unset;
  for (const char* key : kKeysOfHfConfig) {
    const auto* field = v1::Model::descriptor()->FindFieldByName(key);
    if (!model.GetReflection()->HasField(model, field)) unset.push_back(key);
  }
  if (unset.empty()) return;
  out.push_back(
      {"model.hf", fmt::format("model.hf is '{}', but its config.json was not read into model.{}: "
                               "that is done where the job is submitted; submit it with megactl of "
                               "this release, or give the keys",
                               CutUtf8(model.hf(), 200), absl::StrJoin(unset, ", model."))});
}

}  // namespace

Resolution Resolve(const v1::JobMetadata& metadata, const v1::JobSpec& sent) {
  Resolution out{.spec = ApplyDefaults(sent), .violations = {}};
  out.violations = Validate(metadata, out.spec);
  CheckHfWasRead(sent.model(), out.violations);
  if (out.violations.empty()) out.violations = ValidateModel(out.spec);
  return out;
}

}  // namespace mega::spec
