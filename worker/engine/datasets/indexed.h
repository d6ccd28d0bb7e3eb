// Megatron's indexed dataset: PREFIX.bin holds tokens and nothing else, PREFIX.idx says where
// sequences and documents start. Little endian, no padding:
//   "MMIDIDX\0\0" · u64 version 1 · u8 dtype · u64 N sequences · u64 D document entries
//   i32[N] lengths in tokens · i64[N] byte offsets · i64[D] document starts in sequences (0 … N)
//   i8[N] modes, only in multimodal files (read over)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "worker/engine/datasets/file.h"

namespace mega::datasets {

// Codes of the file format; the floating-point ones (6, 7) hold no tokens and are refused.
enum class TokenType : uint8_t { kU8 = 1, kI8 = 2, kI16 = 3, kI32 = 4, kI64 = 5, kU16 = 8 };
int64_t SizeOf(TokenType type);
// The smallest type that holds every id of a vocabulary (u8, u16 or i32).
TokenType TypeFor(int64_t vocab_size);

// Reads a dataset. Thread-safe: all reads are at given places.
class IndexedDataset {
 public:
  // Checks everything the index says against the sizes of both files: INVALID_ARGUMENT names the
  // file, what it says and what was found.
  static absl::StatusOr<IndexedDataset> Open(const std::string& prefix);

  const std::string& prefix() const { return prefix_; }
  TokenType type() const { return type_; }
  int64_t num_tokens() const { return num_tokens_; }
  int64_t num_sequences() const { return num_sequences_; }
  int64_t num_documents() const { return num_documents_; }
  int64_t SequenceLength(int64_t sequence) const;
  // First token of a sequence in the stream of all tokens.
  int64_t SequenceStart(int64_t sequence) const;
  // First sequence of a document; document num_documents() gives num_sequences().
  int64_t DocumentStart(int64_t document) const;

  // Tokens first … first + out.size() − 1 of the stream of all sequences. DATA_LOSS for an id that
  // no 32-bit token can be.
  absl::Status Read(int64_t first, std::span<int32_t> out) const;

 private:
  IndexedDataset(std::string prefix, File bin, Mapping index)
      : prefix_(std::move(prefix)), bin_(std::move(bin)), index_(std::move(index)) {}
  absl::Status CheckIndex(int64_t bin_size);

  std::string prefix_;
  File bin_;  // read by position: unlike a mapping, a file cut under us is an error, not a signal
  Mapping index_;
  TokenType type_ = TokenType::kU16;
  int64_t num_sequences_ = 0, num_documents_ = 0, num_tokens_ = 0;
};

// Writes a dataset under temporary names; both files appear at Finish or never.
class IndexedWriter {
 public:
  static absl::StatusOr<std::unique_ptr<IndexedWriter>> Create(const std::string& prefix,
                                                               TokenType type);
  ~IndexedWriter();

  // Appends to the present sequence. INVALID_ARGUMENT for an id the type cannot hold.
  absl::Status Append(std::span<const int32_t> tokens);
  void EndSequence();
  // Ends the present sequence too, if it has tokens.
  void EndDocument();
  absl::Status Finish();
  int64_t num_tokens() const { return num_tokens_; }

 private:
  IndexedWriter(std::string prefix, TokenType type, File bin, File index)
      : prefix_(std::move(prefix)), type_(type), bin_(std::move(bin)), index_(std::move(index)) {}
  absl::Status Flush();

  std::string prefix_;
  TokenType type_;
  File bin_, index_;
  std::vector<char> buffer_;
  int64_t sequence_tokens_ = 0, num_tokens_ = 0;
  std::vector<int32_t> lengths_;
  std::vector<int64_t> documents_ = {0};
  bool finished_ = false;
};

}  // namespace mega::datasets
