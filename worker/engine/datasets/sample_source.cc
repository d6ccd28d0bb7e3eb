#include "worker/engine/datasets/sample_source.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/log.h"
#include "coordinator/planner/spec/split.h"
#include "worker/engine/datasets/permutation.h"
#include "worker/engine/datasets/text_cache.h"
#include "worker/engine/tokenizers/tokenizer.h"

namespace mega::datasets {
namespace {

namespace fs = std::filesystem;

const char* NameOf(Split split) {
  switch (split) {
    case Split::kTrain:
      return "train";
    case Split::kValidation:
      return "validation";
    case Split::kTest:
      return "test";
  }
  return "";
}

// The prefix of a text, built where data.cache says, else beside the text, else, when there is no
// place for it, in `cache_folder`.
absl::StatusOr<std::string> BuiltText(const v1::Data& data, const std::string& path,
                                      const std::string& cache_folder) {
  MEGA_ASSIGN_OR_RETURN(const auto tokenizer, tokenizers::MakeTokenizer(data.tokenizer()));
  if (!data.cache().empty()) return BuildCached(path, *tokenizer, data.cache());
  std::error_code error;
  const fs::path beside = fs::absolute(path, error).parent_path();
  if (::access(beside.c_str(), W_OK) == 0) {
    const auto built = BuildCached(path, *tokenizer, (beside / ".mega-cache").string());
    // The text itself is as wrong elsewhere.
    if (built.ok() || absl::IsInvalidArgument(built.status())) return built;
    log::Warn(
        "what a text is tokenised into finds no place beside it; taking the run's folder",
        {{"text", path}, {"folder", cache_folder}, {"why", std::string(built.status().message())}});
  }
  return BuildCached(path, *tokenizer, cache_folder);
}

// PREFIX of PREFIX.bin/PREFIX.idx, however it was written; empty when the path is no such dataset.
std::string IndexedPrefix(const std::string& path) {
  const fs::path file(path);
  if (file.extension() == ".bin" || file.extension() == ".idx")
    return (file.parent_path() / file.stem()).string();
  std::error_code error;  // who reads the path says so
  return fs::exists(path + ".idx", error) && !fs::is_regular_file(path, error) ? path : "";
}

}  // namespace

absl::StatusOr<SampleSource> SampleSource::Open(const v1::Data& data,
                                                const std::string& cache_folder, Split split,
                                                uint64_t seed, int64_t vocab_size) {
  SampleSource source;
  source.seq_length_ = data.seq_length();
  source.vocab_size_ = vocab_size;
  source.shuffled_ = data.order() != "sequential";
  // Splits are shuffled apart, whatever their lengths.
  source.key_ = Mix(Mix(seed) ^ static_cast<uint64_t>(split));
  if (source.seq_length_ < 1)
    return InvalidArgument("data.seq_length is {}; choose at least 1", source.seq_length_);
  const bool own_files = split == Split::kValidation && !data.validation().paths().empty();
  for (const std::string& path : own_files ? data.validation().paths() : data.paths())
    if (const absl::Status added = source.Add(path, data, cache_folder); !added.ok())
      return Annotate(added, own_files ? "data.validation.paths" : "data.paths");
  MEGA_RETURN_IF_ERROR(source.Cut(data, split));
  return source;
}

absl::Status SampleSource::Add(const std::string& path, const v1::Data& data,
                               const std::string& cache_folder) {
  std::string prefix = IndexedPrefix(path);
  if (prefix.empty()) {
    MEGA_ASSIGN_OR_RETURN(prefix, BuiltText(data, path, cache_folder));
  }
  MEGA_ASSIGN_OR_RETURN(IndexedDataset dataset, IndexedDataset::Open(prefix));
  starts_.push_back(total_);
  total_ += dataset.num_tokens();
  datasets_.push_back(std::move(dataset));
  return absl::OkStatus();
}

absl::Status SampleSource::Cut(const v1::Data& data, Split split) {
  const bool own_files = !data.validation().paths().empty();
  begin_ = 0;
  end_ = total_;
  if (split != Split::kValidation || !own_files) {
    const auto shares = spec::ParseSplit(data.split());
    if (!shares.ok()) return Annotate(shares.status(), "data.split");
    const auto place = [this](double share) {
      return std::clamp<int64_t>(std::llround(share * static_cast<double>(total_)), 0, total_);
    };
    const int64_t validation = own_files ? place((*shares)[0] + (*shares)[1]) : place((*shares)[0]);
    const int64_t test = (*shares)[2] == 0 ? total_ : place((*shares)[0] + (*shares)[1]);
    if (split == Split::kTrain) end_ = validation;
    if (split == Split::kValidation) begin_ = validation, end_ = test;
    if (split == Split::kTest) begin_ = test;
  }
  samples_per_epoch_ = (num_tokens() - 1) / seq_length_;
  if (samples_per_epoch_ >= 1) return absl::OkStatus();
  const auto& paths =
      own_files && split == Split::kValidation ? data.validation().paths() : data.paths();
  return absl::OutOfRangeError(fmt::format(
      "{}: the {} split has {} of {} tokens, but one sample needs data.seq_length + 1 = {}; give "
      "more text, a larger share in data.split (now {}), or a shorter data.seq_length",
      absl::StrJoin(paths, ", "), NameOf(split), num_tokens(), total_, seq_length_ + 1,
      data.split()));
}

int64_t SampleSource::TokenOf(int64_t sample) const {
  MEGA_CHECK(sample >= 0);
  const int64_t epoch = sample / samples_per_epoch_;
  int64_t place = sample % samples_per_epoch_;
  if (shuffled_)
    place =
        Permutation(samples_per_epoch_, Mix(key_ ^ Mix(static_cast<uint64_t>(epoch)))).At(place);
  return begin_ + place * seq_length_;
}

absl::Status SampleSource::Read(int64_t sample, std::span<int32_t> tokens) const {
  MEGA_CHECK_EQ(static_cast<int64_t>(tokens.size()), seq_length_ + 1);
  int64_t at = TokenOf(sample);
  // A sample may run over the end of one file into the next.
  size_t file = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), at) -
                                    starts_.begin() - 1);
  for (std::span<int32_t> left = tokens; !left.empty(); ++file) {
    const int64_t first = at - starts_[file];
    const int64_t n =
        std::min(datasets_[file].num_tokens() - first, static_cast<int64_t>(left.size()));
    const std::span<int32_t> part = left.first(static_cast<size_t>(n));
    MEGA_RETURN_IF_ERROR(datasets_[file].Read(first, part));
    if (vocab_size_ > 0)
      for (int32_t token : part)
        if (token >= vocab_size_)
          return InvalidArgument(
              "{}.bin holds token {} but model.vocab_size is {}; choose a larger vocabulary or the "
              "tokenizer the data was built with",
              datasets_[file].prefix(), token, vocab_size_);
    at += n;
    left = left.subspan(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace mega::datasets
