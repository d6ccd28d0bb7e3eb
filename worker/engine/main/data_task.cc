#include "worker/engine/main/data_task.h"

#include <cstdio>

#include "base/printable.h"
#include "worker/engine/datasets/build.h"
#include "worker/engine/main/exit_codes.h"
#include "worker/engine/main/progress_line.h"
#include "worker/engine/tokenizers/tokenizer.h"

namespace mega::engine {
namespace {

absl::Status Run(const DataOptions& options) {
  if (options.out.empty() || options.out.ends_with('/'))
    return InvalidArgument("--out '{}' names no file; give the start of the names of two",
                           options.out);
  MEGA_ASSIGN_OR_RETURN(const auto tokenizer, tokenizers::MakeTokenizer(options.tokenizer));
  datasets::BuildProgress last;
  {
    ProgressLine line;
    MEGA_RETURN_IF_ERROR(datasets::Build(
        options.files, *tokenizer, options.out, [&](const datasets::BuildProgress& progress) {
          last = progress;
          line.Show(progress.bytes_read, progress.bytes_total, [&] {
            return fmt::format("{} documents  {} tokens", progress.documents, progress.tokens);
          });
        }));
  }
  if (last.tokens == 0)
    std::fputs("warning: no file holds a token, and no job trains on an empty dataset\n", stderr);
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
