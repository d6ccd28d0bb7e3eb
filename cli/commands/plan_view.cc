#include "cli/commands/plan_view.h"

#include <vector>

#include "base/byte_count.h"
#include "cli/client/errors.h"
#include "cli/view/table.h"
#include "cli/view/words.h"
#include "fmt/core.h"

namespace mega::cli {
namespace {

std::string LayoutText(const v1::Layout& layout) {
  std::string text;
  const auto add = [&text](const char* axis, int64_t size) {
    if (size > 0) text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis, size);
  };
  add("tp", layout.tensor_parallel_size());
  add("cp", layout.context_parallel_size());
  add("ep", layout.expert_parallel_size());
  add("dp", layout.data_parallel_size());
  add("pp", layout.pipeline_parallel_size());
  return text;
}

}  // namespace

std::string PlanText(const v1::Plan& plan) {
  const v1::MemoryBudget& memory = plan.memory();
  const std::vector<std::pair<const char*, int64_t>> purposes = {
      {"weights", memory.weights_bytes()},     {"gradients", memory.grads_bytes()},
      {"optimizer", memory.optimizer_bytes()}, {"activations", memory.activations_bytes()},
      {"workspace", memory.workspace_bytes()}, {"communication", memory.comm_bytes()}};
  double total = 0;
  std::string parts;
  for (const auto& [name, bytes] : purposes) {
    total += static_cast<double>(bytes);
    if (bytes > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name,
                           FormatBytes(static_cast<double>(bytes)));
  }
  std::string out = fmt::format(
      "  layout      {} on {} ranks, {} threads each\n"
      "  schedule    {}, {} micro-batches of {} a rank and step\n"
      "  work        {} steps, {} parameters, {} FLOPs a token\n"
      "  memory      {} a rank: {}\n",
      LayoutText(plan.layout()), plan.world_size(), plan.threads_per_device(),
      Printable(plan.schedule().kind()), plan.micro_batches(), plan.layout().micro_batch_size(),
      plan.steps(), FormatCount(static_cast<double>(plan.parameters())),
      FormatCount(plan.flops_per_token()), FormatBytes(total), parts);
  for (const std::string& reason : plan.reasons())
    out += "  because     " + Printable(reason) + "\n";
  return out;
}

std::string QueueText(const v1::PlanJobResponse& response) {
  if (!response.has_queue()) return "";
  const v1::QueueEntry& queue = response.queue();
  std::string text = fmt::format("  queue       number {} at priority {}: {}", queue.position(),
                                 queue.priority(), Printable(queue.reason()));
  if (queue.has_estimated_start_time())
    text += fmt::format(", about {}", FormatTime(queue.estimated_start_time()));
  text += "\n";
  for (const std::string& name : queue.preempts())
    text += "  preempts    " + Printable(name) + "\n";
  return text;
}

std::string PlacementText(const v1::Plan& plan) {
  Table table({"RANK", "NODE", "DEVICE"});
  for (const v1::RankPlacement& rank : plan.ranks())
    table.AddRow(
        {fmt::format("{}", rank.rank()), Printable(rank.node()), fmt::format("{}", rank.device())});
  return table.ToString();
}

}  // namespace mega::cli
