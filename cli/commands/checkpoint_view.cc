#include "cli/commands/checkpoint_view.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "base/byte_count.h"
#include "cli/client/errors.h"
#include "cli/view/table.h"
#include "cli/view/words.h"
#include "fmt/format.h"

namespace mega::cli {
namespace {

// "optimizer.exp_avg" of "optimizer.exp_avg/layers.7…", "weights" of what has no such prefix.
std::string KindOf(const std::string& tensor) {
  const size_t slash = tensor.find('/');
  return slash == std::string::npos ? "weights" : tensor.substr(0, slash);
}

// Of safetensors' spelling, which has the bits in it: F32, BF16, F8_E4M3. 0: unknown.
double BytesOf(const std::string& dtype) {
  if (dtype == "BOOL") return 1;
  const auto digit = std::ranges::find_if(dtype, absl::ascii_isdigit);
  int bits = 0;
  for (auto it = digit; it != dtype.end() && absl::ascii_isdigit(*it) && bits < 1000; ++it) {
    bits = 10 * bits + (*it - '0');
  }
  return bits / 8.0;
}

std::string Kinds(const v1::Manifest& manifest) {
  struct Kind {
    int64_t tensors = 0;
    double elements = 0, bytes = 0;
    std::map<std::string, int64_t> dtypes;
  };
  std::map<std::string, Kind> kinds;
  for (const v1::TensorInfo& tensor : manifest.tensors()) {
    double elements = 1;
    for (const int64_t dim : tensor.global_shape()) elements *= static_cast<double>(dim);
    Kind& kind = kinds[KindOf(tensor.name())];
    ++kind.tensors;
    kind.elements += elements;
    kind.bytes += elements * BytesOf(tensor.dtype());
    ++kind.dtypes[tensor.dtype()];
  }
  Table table({"KIND", "TENSORS", "ELEMENTS", "SIZE", "TYPE"});
  for (const auto& [name, kind] : kinds) {
    const std::string dtypes = absl::StrJoin(
        kind.dtypes, " ",
        [](std::string* out, const auto& entry) { out->append(Printable(entry.first)); });
    table.AddRow({Printable(name), fmt::format("{}", kind.tensors), FormatCount(kind.elements),
                  FormatBytes(kind.bytes), dtypes});
  }
  return table.ToString();
}

std::string Files(const v1::Manifest& manifest) {
  constexpr int kShown = 16;
  Table table({"FILE", "SIZE"});
  for (int i = 0; i < std::min(kShown, manifest.files_size()); ++i) {
    table.AddRow({Printable(manifest.files(i).name()),
                  FormatBytes(static_cast<double>(manifest.files(i).bytes()))});
  }
  std::string out = table.ToString();
  if (manifest.files_size() > kShown) {
    out += fmt::format("and {} more\n", manifest.files_size() - kShown);
  }
  return out;
}

std::string LoadedBy(const v1::Manifest& manifest, const v1::Job& job) {
  std::string attempts;
  for (const v1::Attempt& attempt : job.attempts()) {
    const bool is_it = attempt.has_load() && attempt.load().step() == manifest.step() &&
                       attempt.load().epoch() == manifest.epoch();
    if (is_it) attempts += fmt::format("{}{}", attempts.empty() ? "" : ", ", attempt.number());
  }
  return attempts.empty() ? "no attempt has started from it yet" : "attempts " + attempts;
}

}  // namespace

std::string CheckpointText(const v1::Manifest& manifest, const v1::Job* job) {
  std::string out;
  AddLine(out, "Checkpoint",
          fmt::format("step {}{}", manifest.step(),
                      job == nullptr      ? ""
                      : manifest.pinned() ? ", pinned: it stays until it is unpinned"
                                          : ", not pinned"));
  AddLine(out, "Job",
          fmt::format("{} ({})", Printable(manifest.job_name()), Printable(manifest.job_uid())));
  AddLine(out, "Folder", Printable(manifest.directory()));
  std::string saved = fmt::format("{} by attempt {} (epoch {})", FormatTime(manifest.create_time()),
                                  manifest.attempt(), manifest.epoch());
  if (!manifest.cause().empty()) saved += ", " + Printable(manifest.cause());
  AddLine(out, "Saved", saved);
  const v1::TrainerState& state = manifest.state();
  AddLine(out, "Trained",
          fmt::format("{} samples, {} tokens, seed {}", state.consumed_samples(),
                      state.consumed_tokens(), state.seed()));
  if (state.has_validation_loss()) {
    AddLine(out, "Validation", fmt::format("loss {:.4f}", state.validation_loss()));
  }
  AddLine(out, "Size",
          fmt::format("{} in {} files", FormatBytes(static_cast<double>(manifest.total_bytes())),
                      manifest.files_size()));
  if (job != nullptr) AddLine(out, "Used by", LoadedBy(manifest, *job));
  if (!manifest.tensors().empty()) out += "\nTensors\n" + Kinds(manifest);
  if (!manifest.files().empty()) out += "\nFiles\n" + Files(manifest);
  return out;
}

}  // namespace mega::cli
