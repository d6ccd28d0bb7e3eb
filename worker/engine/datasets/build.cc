#include "worker/engine/datasets/build.h"

#include <optional>
#include <vector>

#include "coordinator/planner/spec/data_paths.h"
#include "worker/engine/datasets/file.h"
#include "worker/engine/datasets/indexed.h"
#include "worker/engine/datasets/jsonl.h"

namespace mega::datasets {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

class Builder {
 public:
  Builder(const tokenizers::Tokenizer& tokenizer, IndexedWriter& writer, const OnProgress& report)
      : tokenizer_(tokenizer), writer_(writer), report_(report) {}

  absl::Status AddTotal(const std::string& path) {
    MEGA_ASSIGN_OR_RETURN(const File file, File::OpenToRead(path));
    MEGA_ASSIGN_OR_RETURN(const int64_t size, file.Size());
    progress_.bytes_total += size;
    return absl::OkStatus();
  }

  absl::Status Add(const std::string& path) {
    MEGA_ASSIGN_OR_RETURN(File file, File::OpenToRead(path));
    const int64_t start = progress_.bytes_read;
    if (spec::IsJsonl(path)) {
      MEGA_RETURN_IF_ERROR(ReadJsonl(file, [&](std::string_view text, int64_t bytes_read) {
        const absl::Status status = Encode(text);
        progress_.bytes_read = start + bytes_read;
        EndDocument();
        return status;
      }));
    } else {
      MEGA_RETURN_IF_ERROR(AddText(file));
      EndDocument();
    }
    if (report_) report_(progress_);
    return absl::OkStatus();
  }

 private:
  // A piece at a time where the tokenizer allows it, so that memory does not follow the file.
  absl::Status AddText(File& file) {
    MEGA_ASSIGN_OR_RETURN(const int64_t size, file.Size());
    std::vector<char> block(tokenizer_.concatenative() ? kBlockBytes
                                                       : static_cast<size_t>(size) + 1);
    while (true) {
      MEGA_ASSIGN_OR_RETURN(const size_t n, file.Read(block));
      MEGA_RETURN_IF_ERROR(Encode({block.data(), n}));
      progress_.bytes_read += static_cast<int64_t>(n);
      Report();
      if (n < block.size()) return absl::OkStatus();
    }
  }

  absl::Status Encode(std::string_view text) {
    ids_.clear();
    tokenizer_.Encode(text, ids_);
    return writer_.Append(ids_);
  }

  void EndDocument() {
    if (const std::optional<int32_t> id = tokenizer_.end_of_document())
      writer_.Append({&*id, 1}).IgnoreError();  // it fits: it is in the vocabulary
    writer_.EndDocument();
    ++progress_.documents;
    Report();
  }

  void Report() {
    progress_.tokens = writer_.num_tokens();
    if (!report_ || progress_.bytes_read < next_report_) return;
    next_report_ = progress_.bytes_read + (64 << 20);
    report_(progress_);
  }

  const tokenizers::Tokenizer& tokenizer_;
  IndexedWriter& writer_;
  const OnProgress& report_;
  std::vector<int32_t> ids_;
  BuildProgress progress_;
  int64_t next_report_ = 64 << 20;
};

}  // namespace

absl::Status Build(std::span<const std::string> paths, const tokenizers::Tokenizer& tokenizer,
                   const std::string& prefix, const OnProgress& progress) {
  MEGA_ASSIGN_OR_RETURN(const std::unique_ptr<IndexedWriter> writer,
                        IndexedWriter::Create(prefix, TypeFor(tokenizer.vocab_size())));
  Builder builder(tokenizer, *writer, progress);
  for (const std::string& path : paths) MEGA_RETURN_IF_ERROR(builder.AddTotal(path));
  for (const std::string& path : paths) MEGA_RETURN_IF_ERROR(builder.Add(path));
  return writer->Finish();
}

}  // namespace mega::datasets
