// Sample i of a job, for any i: a function of the data, the seed and i alone, so that a resume or
// another number of ranks goes on exactly where the samples consumed say.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "mega/v1/job.pb.h"
#include "worker/engine/datasets/indexed.h"

namespace mega::datasets {

enum class Split { kTrain, kValidation, kTest };

// The stream of all data.paths in order is cut into train, validation and test by data.split. A
// split of T tokens has (T − 1) / seq_length samples; neighbours share one token, the last target
// of one being the first input of the next. Sample i lies in epoch i / samples_per_epoch; its place
// there is permuted afresh for every epoch (order: shuffled) or kept (sequential).
// Immutable, so any thread may read.
class SampleSource {
 public:
  // `data`: defaults applied, paths absolute. Text is built into data.cache, or beside the text
  // where that can be written, or `cache_folder`. data.validation.paths replace the validation
  // share of data.split, which then falls to training. vocab_size: larger ids are refused when
  // read; 0 = not checked. A split too short for one sample is OUT_OF_RANGE.
  static absl::StatusOr<SampleSource> Open(const v1::Data& data, const std::string& cache_folder,
                                           Split split, uint64_t seed, int64_t vocab_size = 0);

  int64_t seq_length() const { return seq_length_; }
  int64_t num_tokens() const { return end_ - begin_; }
  int64_t samples_per_epoch() const { return samples_per_epoch_; }

  // Tokens of sample i ≥ 0; tokens.size() is seq_length + 1.
  absl::Status Read(int64_t sample, std::span<int32_t> tokens) const;

  // First token of sample i in the stream of the data's paths.
  int64_t TokenOf(int64_t sample) const;

 private:
  SampleSource() = default;
  absl::Status Add(const std::string& path, const v1::Data& data, const std::string& cache_folder);
  absl::Status Cut(const v1::Data& data, Split split);

  std::vector<IndexedDataset> datasets_;
  std::vector<int64_t> starts_;  // of each dataset in the stream
  int64_t total_ = 0;
  int64_t begin_ = 0, end_ = 0;  // of the split
  int64_t seq_length_ = 0, samples_per_epoch_ = 0, vocab_size_ = 0;
  bool shuffled_ = true;
  uint64_t key_ = 0;
};

}  // namespace mega::datasets
