#include "coordinator/planner/layout/validate.h"

#include <algorithm>

#include "coordinator/planner/spec/cross_rules.h"
#include "coordinator/planner/spec/keys.h"
#include "fmt/format.h"

namespace mega::planner {
namespace {

std::string Divisors(int64_t n) { return spec::Choices(spec::DivisorsOf(n)); }

}  // namespace

std::vector<std::string> LayoutViolations(const ModelSpec& model, const v1::Layout& layout,
                                          int64_t seq_length) {
  std::vector<std::string> out;
  const int64_t tp = std::max<int64_t>(layout.tensor_parallel_size(), 1);
  const int64_t cp = std::max<int64_t>(layout.context_parallel_size(), 1);
  const int64_t pp = std::max<int64_t>(layout.pipeline_parallel_size(), 1);
  const int64_t vpp = std::max<int64_t>(layout.virtual_stages(), 1);
  const int64_t heads = model.num_attention_heads, groups = model.num_query_groups;
  if (heads % tp != 0)
    out.push_back(
        fmt::format("parallelism.tensor_parallel_size is {} but model.num_attention_heads is {}; "
                    "choose {}",
                    tp, heads, Divisors(heads)));
  if (groups % tp != 0 && tp % groups != 0)
    out.push_back(
        fmt::format("parallelism.tensor_parallel_size is {} but model.num_query_groups is {}; "
                    "choose a divisor or a multiple of {}",
                    tp, groups, groups));
  if (model.ffn_hidden_size % tp != 0)
    out.push_back(
        fmt::format("parallelism.tensor_parallel_size is {} but model.ffn_hidden_size is {}; "
                    "choose a divisor of {}",
                    tp, model.ffn_hidden_size, model.ffn_hidden_size));
  if (model.num_layers % pp != 0 || model.num_layers / pp % vpp != 0)
    out.push_back(
        fmt::format("parallelism.pipeline_parallel_size × virtual_stages is {} × {} but "
                    "model.num_layers is {}; choose sizes whose product divides {}",
                    pp, vpp, model.num_layers, model.num_layers));
  if (cp > 1 && seq_length / 2 % cp + seq_length % 2 != 0)
    out.push_back(
        fmt::format("parallelism.context_parallel_size is {} but data.seq_length is {}; each rank "
                    "holds two equal pieces, so 2 × {} must divide it",
                    cp, seq_length, cp));
  if (layout.sequence_parallel() && tp == 1)
    out.push_back(
        "parallelism.sequence_parallel is true but parallelism.tensor_parallel_size is 1; choose "
        "false, or at least 2");
  if (layout.sequence_parallel() && seq_length / cp % tp != 0)
    out.push_back(
        fmt::format("parallelism.sequence_parallel cuts {} tokens of a rank by "
                    "parallelism.tensor_parallel_size {}; choose a divisor",
                    seq_length / cp, tp));
  return out;
}

}  // namespace mega::planner
