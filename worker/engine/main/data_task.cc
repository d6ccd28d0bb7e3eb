#include "worker/engine/main/data_task.h"

#include <unistd.h>

#include <cstdio>

#include "base/printable.h"
#include "worker/engine/datasets/build.h"
#include "worker/engine/main/exit_codes.h"
#include "worker/engine/tokenizers/tokenizer.h"

namespace mega::engine {
namespace {

// One line on a terminal, rewritten; nothing in a pipe.
void ShowProgress(const datasets::BuildProgress& progress) {
  const double share = progress.bytes_total > 0 ? 100.0 * static_cast<double>(progress.bytes_read) /
                                                      static_cast<double>(progress.bytes_total)
                                                : 100.0;
  std::fprintf(stderr, "\r%5.1f %%  %lld documents  %lld tokens", share,
               static_cast<long long>(progress.documents), static_cast<long long>(progress.tokens));
}

absl::Status Run(const DataOptions& options) {
  MEGA_ASSIGN_OR_RETURN(const auto tokenizer, tokenizers::MakeTokenizer(options.tokenizer));
  const bool on_terminal = isatty(STDERR_FILENO) == 1;
  datasets::BuildProgress last;
  MEGA_RETURN_IF_ERROR(datasets::Build(options.files, *tokenizer, options.out,
                                       [&](const datasets::BuildProgress& progress) {
                                         last = progress;
                                         if (on_terminal) ShowProgress(progress);
                                       }));
  if (on_terminal) std::fputs("\n", stderr);
  std::printf("%s.bin and %s.idx: %lld documents, %lld tokens\n", options.out.c_str(),
              options.out.c_str(), static_cast<long long>(last.documents),
              static_cast<long long>(last.tokens));
  return absl::OkStatus();
}

}  // namespace

int BuildData(const DataOptions& options) {
  const absl::Status status = Run(options);
  if (status.ok()) return kExitOk;
  TellError("mega-engine data build", status);
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? 2 : kExitFailed;
}

}  // namespace mega::engine
