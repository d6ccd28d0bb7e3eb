#include "coordinator/planner/layout/validate.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "fmt/format.h"

namespace mega::planner {
namespace {

// "1, 2, 4 or 8": the divisors of n, the largest twelve of them.
std::string Divisors(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) divisors.push_back(d);
  if (divisors.size() > 12) divisors.erase(divisors.begin(), divisors.end() - 12);
  if (divisors.size() < 2) return "1";
  return fmt::format("{} or {}", absl::StrJoin(divisors.begin(), divisors.end() - 1, ", "),
                     divisors.back());
}

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
