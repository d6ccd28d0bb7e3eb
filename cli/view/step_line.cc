#include "cli/view/step_line.h"

#include "fmt/core.h"

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

}  // namespace mega::cli
