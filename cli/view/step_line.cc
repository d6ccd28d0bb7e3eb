#include "cli/view/step_line.h"

#include "absl/time/time.h"
#include "base/clock.h"
#include "fmt/core.h"
#include "nlohmann/json.hpp"

namespace mega::cli {

std::string StepLine(const v1::StepReport& report) {
  std::string line =
      fmt::format("step {}/{} loss {:.4f} grad_norm {:.3g} lr {:.1e} tokens/s {:.0f} mfu {:.1f}%",
                  report.step(), report.total_steps(), report.loss(), report.grad_norm(),
                  report.lr(), report.tokens_per_s(), report.mfu() * 100);
  if (report.has_validation_loss())
    line += fmt::format(" validation_loss {:.4f}", report.validation_loss());
  return line;
}

std::string StepJson(const v1::StepReport& report) {
  nlohmann::ordered_json json = {{"step", report.step()}, {"total_steps", report.total_steps()},
                                 {"loss", report.loss()}, {"grad_norm", report.grad_norm()},
                                 {"lr", report.lr()},     {"tokens_per_s", report.tokens_per_s()},
                                 {"mfu", report.mfu()},   {"step_seconds", report.step_seconds()}};
  if (report.has_validation_loss()) json["validation_loss"] = report.validation_loss();
  json["seconds"] = {{"data", report.seconds().data()},
                     {"forward", report.seconds().forward()},
                     {"backward", report.seconds().backward()},
                     {"reduce_exposed", report.seconds().reduce_exposed()},
                     {"optimizer", report.seconds().optimizer()},
                     {"evaluate", report.seconds().evaluate()}};
  json["consumed_tokens"] = report.consumed_tokens();
  json["memory_bytes"] = report.memory_bytes();
  json["checkpoint_stall_seconds"] = report.checkpoint_stall_seconds();
  json["attempt"] = report.attempt();
  if (report.has_time()) {
    json["time"] =
        absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", FromProto(report.time()), absl::UTCTimeZone());
  }
  return json.dump();
}

}  // namespace mega::cli
